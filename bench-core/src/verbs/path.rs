//! How two ports reach each other. Both ends compute the same from the same two [`VerbsInfo`].

use thiserror::Error;

use super::{
    Gid, GidFamily, GidKind, GidRow, Grh, NoPartition, PathMtu, PkeyRow, RdmaOptions, VerbsInfo, choose_pkeys,
};
use crate::cell::End;
use crate::topology::LinkLayer;

/// The way between the two ends of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The largest payload of a packet.
    pub mtu: PathMtu,
    /// How packets find the peer.
    pub routing: Routing,
    /// The source's row of its P_Key table.
    pub source_pkey: PkeyRow,
    /// The destination's.
    pub destination_pkey: PkeyRow,
}

/// How packets find the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// By LID alone: InfiniBand inside a subnet.
    Lid,
    /// With a global route header.
    Global {
        /// The source's GID.
        source: GidRow,
        /// The destination's.
        destination: GidRow,
    },
}

/// Why two ports have no common way.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoPath {
    /// One is InfiniBand, one is Ethernet.
    #[error("{source_device} runs {source_layer} and {destination_device} runs {destination_layer}")]
    LinkLayers {
        /// The source's device.
        source_device: String,
        /// What it runs.
        source_layer: LinkLayer,
        /// The destination's device.
        destination_device: String,
        /// What it runs.
        destination_layer: LinkLayer,
    },
    /// No GID of one end is of the same protocol and address family as one of the other.
    #[error("no GID of {source_device} ({}) goes with one of {destination_device} ({})", list(.source_gids), list(.destination_gids))]
    Gids {
        /// The source's device.
        source_device: String,
        /// Its usable GIDs.
        source_gids: Vec<GidRow>,
        /// The destination's device.
        destination_device: String,
        /// Its usable GIDs.
        destination_gids: Vec<GidRow>,
    },
    /// The partition.
    #[error("{0}")]
    Partition(NoPartition),
    /// A port's active MTU is smaller than the one that was asked for.
    #[error("path MTU {} was asked for, but {device} has an active MTU of {}", .wanted.bytes(), .active.bytes())]
    Mtu {
        /// What was asked for.
        wanted: PathMtu,
        /// The device with the smaller one.
        device: String,
        /// What it has.
        active: PathMtu,
    },
}

impl NoPath {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::LinkLayers { .. } => {
                "a rail must be of one link layer: look at both nodes with `railmesh topo`"
            }
            Self::Gids { .. } => {
                "give both rails an address of the same family, and look at the GID tables with `show_gids`; an index \
                 that was given with -x (gid_index) must be of the same kind on both nodes"
            }
            Self::Partition(_) => {
                "look at the subnet manager's partitions.conf and at /sys/class/infiniband/DEVICE/ports/1/pkeys of both \
                 nodes"
            }
            Self::Mtu { .. } => {
                "ask for a smaller one (-m), or raise the MTU of the network device or the subnet manager's group"
            }
        }
    }
}

impl Path {
    /// The GID of an end, where packets carry one.
    pub fn gid(&self, end: End) -> Option<GidRow> {
        match (self.routing, end) {
            (Routing::Lid, _) => None,
            (Routing::Global { source, .. }, End::Source) => Some(source),
            (Routing::Global { destination, .. }, End::Destination) => Some(destination),
        }
    }

    /// The row of an end's P_Key table.
    pub fn pkey(&self, end: End) -> PkeyRow {
        match end {
            End::Source => self.source_pkey,
            End::Destination => self.destination_pkey,
        }
    }
}

/// Chooses the way between two ports.
///
/// * InfiniBand goes by LID; a global route header is used where a port demands it or the subnets differ.
/// * RoCE takes, of the pairs of GIDs of one protocol and family, RoCE v2 before v1, IPv4 before IPv6 before link-local
///   addresses, then the pair that shares most leading bits, then the earlier rows.
///
/// # Errors
/// [`NoPath`] with what does not fit.
pub fn choose_path(
    source: &VerbsInfo,
    destination: &VerbsInfo,
    options: &RdmaOptions,
) -> Result<Path, NoPath> {
    if source.link_layer != destination.link_layer {
        return Err(NoPath::LinkLayers {
            source_device: source.device.clone(),
            source_layer: source.link_layer,
            destination_device: destination.device.clone(),
            destination_layer: destination.link_layer,
        });
    }
    let (source_pkey, destination_pkey) =
        choose_pkeys(&source.pkeys, &destination.pkeys, options.pkey).map_err(NoPath::Partition)?;
    Ok(Path {
        mtu: path_mtu(source, destination, options.mtu)?,
        routing: routing(source, destination)?,
        source_pkey,
        destination_pkey,
    })
}

fn path_mtu(source: &VerbsInfo, destination: &VerbsInfo, wanted: Option<PathMtu>) -> Result<PathMtu, NoPath> {
    let narrow = if destination.mtu < source.mtu { destination } else { source };
    match wanted {
        Some(wanted) if wanted > narrow.mtu => {
            Err(NoPath::Mtu { wanted, device: narrow.device.clone(), active: narrow.mtu })
        }
        Some(wanted) => Ok(wanted),
        None => Ok(narrow.mtu),
    }
}

fn routing(source: &VerbsInfo, destination: &VerbsInfo) -> Result<Routing, NoPath> {
    if goes_by_lid(source, destination) {
        return Ok(Routing::Lid);
    }
    let pairs = source.gids.iter().enumerate().flat_map(|(i, own)| {
        destination
            .gids
            .iter()
            .enumerate()
            .filter(|(_, peer)| peer.kind == own.kind && peer.gid.family() == own.gid.family())
            .map(move |(j, peer)| (rank(*own, *peer), i, j, *own, *peer))
    });
    pairs
        .min_by_key(|(rank, i, j, ..)| (*rank, *i, *j))
        .map(|(.., source, destination)| Routing::Global { source, destination })
        .ok_or_else(|| NoPath::Gids {
            source_device: source.device.clone(),
            source_gids: source.gids.clone(),
            destination_device: destination.device.clone(),
            destination_gids: destination.gids.clone(),
        })
}

fn goes_by_lid(source: &VerbsInfo, destination: &VerbsInfo) -> bool {
    let prefix = |info: &VerbsInfo| info.gids.first().map(|row| row.gid.subnet_prefix());
    match (source.grh, destination.grh) {
        (Grh::BetweenSubnets, Grh::BetweenSubnets) => match (prefix(source), prefix(destination)) {
            (Some(own), Some(peer)) => own == peer,
            (None, _) | (_, None) => true,
        },
        (Grh::Always, _) | (_, Grh::Always) => false,
    }
}

/// Smaller is better.
fn rank(own: GidRow, peer: GidRow) -> (u8, GidFamily, u32) {
    let protocol = match own.kind {
        GidKind::InfiniBand => 0,
        GidKind::RoceV2 => 1,
        GidKind::RoceV1 => 2,
    };
    (protocol, own.gid.family(), u128::BITS - shared(own.gid, peer.gid))
}

/// Leading bits that both share, up to where no subnet is smaller: hosts of one subnet differ in their last byte, and
/// which of them are closer says nothing.
fn shared(own: Gid, peer: Gid) -> u32 {
    own.shared_bits(peer).min(u128::BITS - 8)
}

/// The UDP source port that drivers make of a flow label (`ibv_flow_label_to_udp_sport` of rdma-core).
pub fn udp_source_port(flow_label: u32) -> u16 {
    let folded = (flow_label & 0x3fff) ^ ((flow_label & 0xf_c000) >> 14);
    folded as u16 | 0xc000
}

fn list(rows: &[GidRow]) -> String {
    match rows {
        [] => "none usable".to_owned(),
        rows => rows.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;
    use crate::verbs::{QueuePairAddress, RemoteMemory};

    fn row(index: u8, gid: &str, kind: GidKind) -> GidRow {
        GidRow { index, gid: Gid(gid.parse::<Ipv6Addr>().expect("an address").octets()), kind }
    }

    fn roce(gids: &[GidRow]) -> VerbsInfo {
        VerbsInfo {
            device: "mlx5_0".to_owned(),
            link_layer: LinkLayer::Ethernet,
            lid: 0,
            grh: Grh::Always,
            gids: gids.to_vec(),
            pkeys: vec![PkeyRow { index: 0, value: 0xffff }],
            mtu: PathMtu::B4096,
            max_reads_out: 16,
            max_reads_in: 16,
            receives: 0,
            queue_pairs: vec![QueuePairAddress { number: 1, psn: 2 }],
            memory: RemoteMemory { address: 0, rkey: 0, bytes: 0 },
            seed: [0; 16],
        }
    }

    fn infiniband(gid: &str) -> VerbsInfo {
        VerbsInfo {
            link_layer: LinkLayer::InfiniBand,
            lid: 7,
            grh: Grh::BetweenSubnets,
            ..roce(&[row(0, gid, GidKind::InfiniBand)])
        }
    }

    fn indices(source: &[GidRow], destination: &[GidRow]) -> Option<(u8, u8)> {
        match choose_path(&roce(source), &roce(destination), &RdmaOptions::default()).ok()?.routing {
            Routing::Lid => None,
            Routing::Global { source, destination } => Some((source.index, destination.index)),
        }
    }

    #[test]
    fn roce_takes_the_best_pair_of_one_protocol_and_family() {
        use GidKind::{RoceV1, RoceV2};
        let usual = |net: u8, host: u8| {
            let (local, mapped) = (format!("fe80::{host}"), format!("::ffff:10.0.{net}.{host}"));
            [row(0, &local, RoceV1), row(1, &local, RoceV2), row(2, &mapped, RoceV1), row(3, &mapped, RoceV2)]
        };
        // The common table of mlx5: link-local first, IPv4 v2 last.
        assert_eq!(indices(&usual(0, 1), &usual(0, 2)), Some((3, 3)));
        // The same host address at another index (perftest #44: each end took its own default).
        let other = [row(0, "fe80::9", RoceV2), row(1, "::ffff:10.0.0.9", RoceV2)];
        assert_eq!(indices(&usual(0, 1), &other), Some((3, 1)));
        // Two networks on one port: the pair of one subnet.
        let two = [row(4, "::ffff:10.9.0.1", RoceV2), row(5, "::ffff:10.0.0.1", RoceV2)];
        assert_eq!(indices(&two, &usual(0, 2)), Some((5, 3)));
        // Routed rails: different subnets are no obstacle.
        assert_eq!(indices(&usual(1, 1), &usual(2, 2)), Some((3, 3)));
        // Link-local only where there is nothing else, v1 only where one end has no v2.
        assert_eq!(indices(&usual(0, 1)[..2], &usual(0, 2)), Some((1, 1)));
        assert_eq!(indices(&usual(0, 1), &[row(2, "::ffff:10.0.0.2", RoceV1)]), Some((2, 2)));
        assert_eq!(indices(&[row(3, "::ffff:10.0.0.1", RoceV2)], &[row(1, "2001:db8::2", RoceV2)]), None);
        assert_eq!(indices(&[], &usual(0, 2)), None);
    }

    #[test]
    fn both_ends_choose_the_same_pair() {
        let a =
            roce(&[row(3, "::ffff:10.0.0.1", GidKind::RoceV2), row(5, "::ffff:10.0.0.3", GidKind::RoceV2)]);
        let b =
            roce(&[row(1, "::ffff:10.0.0.2", GidKind::RoceV2), row(2, "::ffff:10.0.0.4", GidKind::RoceV2)]);
        let path = choose_path(&a, &b, &RdmaOptions::default()).expect("a path");
        assert_eq!(path.gid(End::Source).map(|row| row.index), Some(3));
        assert_eq!(path.gid(End::Destination).map(|row| row.index), Some(1));
    }

    #[test]
    fn infiniband_goes_by_lid_unless_a_port_or_the_subnets_demand_a_global_route() {
        let routing = |a: &VerbsInfo, b: &VerbsInfo| {
            choose_path(a, b, &RdmaOptions::default()).map(|path| path.routing)
        };
        let (one, two) = (infiniband("fe80::1"), infiniband("fe80::2"));
        assert_eq!(routing(&one, &two), Ok(Routing::Lid));
        let function = VerbsInfo { grh: Grh::Always, ..two.clone() };
        assert!(matches!(routing(&one, &function), Ok(Routing::Global { .. })));
        let elsewhere = infiniband("fec0:0:0:1::2");
        assert!(
            matches!(routing(&one, &elsewhere), Err(NoPath::Gids { .. })),
            "a link-local prefix is not routed"
        );
        assert!(matches!(routing(&infiniband("fec0::1"), &elsewhere), Ok(Routing::Global { .. })));
        let ethernet = roce(&[]);
        assert!(matches!(routing(&one, &ethernet), Err(NoPath::LinkLayers { .. })));
    }

    #[test]
    fn the_smaller_active_mtu_rules_and_a_larger_wish_is_refused_with_the_device() {
        let wide = infiniband("fe80::1");
        let narrow = VerbsInfo { mtu: PathMtu::B1024, device: "mlx5_9".to_owned(), ..infiniband("fe80::2") };
        let with =
            |mtu| choose_path(&wide, &narrow, &RdmaOptions { mtu, ..RdmaOptions::default() }).map(|p| p.mtu);
        assert_eq!(with(None), Ok(PathMtu::B1024));
        assert_eq!(with(Some(PathMtu::B512)), Ok(PathMtu::B512));
        let refused = with(Some(PathMtu::B2048)).expect_err("too large");
        assert_eq!(refused.to_string(), "path MTU 2048 was asked for, but mlx5_9 has an active MTU of 1024");
    }

    #[test]
    fn a_flow_label_gives_the_port_that_drivers_use() {
        // Worked by hand from rdma-core's formula.
        for (label, port) in [(0, 0xc000), (1, 0xc001), (0x4000, 0xc001), (0xf_ffff, 0xffc0)] {
            assert_eq!(udp_source_port(label), port, "{label:#x}");
        }
    }
}
