//! Setting up an end: from the name of a rail's device to queue pairs that have numbers.

use std::net::IpAddr;
use std::sync::Arc;

use bench_core::message::CellTask;
use bench_core::node::RailHca;
use bench_core::record::{Failure, FailureKind, Phase};
use bench_core::topology::{LinkLayer, PhysicalState, PortState};
use bench_core::verbs::{
    GidKind, GidRow, Grh, PathMtu, PkeyRow, PortView, RdmaOptions, VerbsInfo, check_port,
};
use rustix::rand::{GetRandomFlags, getrandom};

use super::layout::Layout;
use super::link::Link;
use super::role::{Needs, Role};
use crate::data::verbs::context::{Context, GidTableRow};
use crate::data::verbs::error::VerbError;
use crate::data::verbs::gpudirect;
use crate::data::verbs::netdev::{Netdev, netdev};
use crate::data::verbs::protection_domain::ProtectionDomain;
use crate::data::verbs::queue_pair::{QueuePair, Wishes};
use crate::data::verbs::region::{NoRegion, Region};
use crate::data::verbs::sys::constants::{LINK_LAYER_ETHERNET, PORT_GRH_REQUIRED};
use crate::data::verbs::sys::{DeviceAttr, PortAttr};
use crate::data::verbs::usable::{self, Absent};
use crate::data::{Token, verbs::completion_queue::CompletionQueue};

/// Sets up an end.
///
/// # Errors
/// [`Failure`] in phase `Prepare`: no such device, port not usable, no such GID, memory that cannot be locked.
pub(super) fn set_up(task: &CellTask, options: &RdmaOptions, role: Role) -> Result<Link, Failure> {
    let hca = task.hca.as_ref().ok_or_else(|| no_hca(task))?;
    let context = open(hca)?;
    let limits = context.limits().map_err(prepare)?;
    let port = Port::look(&context, hca)?;
    let needs = role.needs(&task.case, options, u32::try_from(limits.max_qp_wr).unwrap_or(0));
    let lanes = super::lanes(&task.case);
    let layout = Layout::new(usize::try_from(task.case.size.get()).unwrap_or(usize::MAX), lanes);
    let pd = context.protection_domain().map_err(prepare)?;
    let region = region(&pd, &layout, options)?;
    let gpudirect = gpudirect::probe(&pd);
    let cq = context.completion_queue(needs.completions.saturating_mul(lanes as u32)).map_err(prepare)?;
    let mut seed = Token::default();
    getrandom(&mut seed, GetRandomFlags::empty())
        .map_err(|errno| unsupported(format!("no random numbers: {errno}"), None))?;
    let queue_pairs = queue_pairs(&pd, &cq, &needs, options, lanes, &seed)?;
    let info = VerbsInfo {
        device: hca.name(),
        link_layer: port.link_layer,
        lid: port.attr.lid,
        grh: port.grh(),
        gids: gids(&context, &port, options, task.bind)?,
        pkeys: pkeys(&context, &port)?,
        mtu: port.mtu()?,
        max_reads_out: reads(limits.max_qp_init_rd_atom),
        max_reads_in: reads(limits.max_qp_rd_atom),
        receives: receives_of(role, &needs),
        queue_pairs: queue_pairs.iter().map(QueuePair::address).collect(),
        memory: region.remote(),
        seed,
    };
    let granted = queue_pairs.first().map_or(0, QueuePair::inline_bytes);
    Ok(Link {
        inline_bytes: granted.min(needs.inline_bytes),
        queue_pairs,
        cq,
        region: Arc::new(region),
        layout,
        info,
        port: hca.port,
        firmware: firmware(&limits),
        gpudirect,
    })
}

fn open(hca: &RailHca) -> Result<Arc<Context>, Failure> {
    let list = usable::devices().map_err(absent)?;
    match list.open(&hca.device) {
        Some(Ok(context)) => Ok(context),
        Some(Err(error)) => {
            let names = list.names();
            let device = names.iter().find(|device| device.name == hca.device);
            Err(device.map_or_else(
                || prepare(error.clone()),
                |device| absent(usable::does_not_open(device, &error)),
            ))
        }
        None => {
            let names: Vec<String> = list.names().into_iter().map(|device| device.name).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Err(unsupported(
                format!("there is no RDMA device {} here; there is {there}", hca.device),
                Some("name the rails' devices with --rails (agent) or rails_of (plan)"),
            ))
        }
    }
}

/// A port as it is now.
struct Port {
    number: u8,
    name: String,
    link_layer: LinkLayer,
    attr: PortAttr,
}

impl Port {
    fn look(context: &Context, hca: &RailHca) -> Result<Self, Failure> {
        let attr = context.port(hca.port).map_err(prepare)?;
        let link_layer = match attr.link_layer {
            LINK_LAYER_ETHERNET => LinkLayer::Ethernet,
            _ => LinkLayer::InfiniBand,
        };
        let port = Self { number: hca.port, name: hca.name(), link_layer, attr };
        check_port(&port.view()).map_err(|problem| unsupported(problem.text, Some(&problem.remedy)))?;
        Ok(port)
    }

    fn view(&self) -> PortView {
        PortView {
            name: self.name.clone(),
            link_layer: self.link_layer,
            state: match self.attr.state {
                1 => PortState::Down,
                2 => PortState::Init,
                3 => PortState::Armed,
                4 => PortState::Active,
                other => PortState::Other(format!("state {other}")),
            },
            physical: match self.attr.phys_state {
                2 => PhysicalState::Polling,
                3 => PhysicalState::Disabled,
                5 => PhysicalState::LinkUp,
                other => PhysicalState::Other(format!("state {other}")),
            },
            lid: self.attr.lid,
            sm_lid: self.attr.sm_lid,
        }
    }

    fn grh(&self) -> Grh {
        match self.link_layer {
            LinkLayer::Ethernet => Grh::Always,
            LinkLayer::InfiniBand if self.attr.flags & PORT_GRH_REQUIRED != 0 => Grh::Always,
            LinkLayer::InfiniBand => Grh::BetweenSubnets,
        }
    }

    fn mtu(&self) -> Result<PathMtu, Failure> {
        let code = usize::try_from(self.attr.active_mtu).unwrap_or(0);
        code.checked_sub(1).and_then(|position| PathMtu::ALL.get(position)).copied().ok_or_else(|| {
            unsupported(format!("{} reports active MTU {code}, which is none", self.name), None)
        })
    }
}

/// The GIDs that may be used, the rail's own address first.
fn gids(
    context: &Context,
    port: &Port,
    options: &RdmaOptions,
    rail: Option<IpAddr>,
) -> Result<Vec<GidRow>, Failure> {
    let otherwise = match port.link_layer {
        LinkLayer::InfiniBand => GidKind::InfiniBand,
        LinkLayer::Ethernet => GidKind::RoceV2,
    };
    if let Some(index) = options.gid_index {
        let row = context.gid(port.number, index, otherwise).ok().flatten();
        return row.map(|found| vec![found.row]).ok_or_else(|| empty_gid(port, index));
    }
    let rows = match port.link_layer {
        LinkLayer::InfiniBand => 1,
        LinkLayer::Ethernet => u8::try_from(port.attr.gid_tbl_len).unwrap_or(u8::MAX),
    };
    let mut found: Vec<GidRow> = (0..rows)
        .filter_map(|index| context.gid(port.number, index, otherwise).ok().flatten())
        .filter(is_here)
        .map(|row| row.row)
        .collect();
    found.sort_by_key(|row| rail != Some(row.gid.ip()));
    found.truncate(MOST_GIDS);
    Ok(found)
}

/// Whether a row's network device is up and of this network namespace, where the kernel tells which it is.
fn is_here(row: &GidTableRow) -> bool {
    match row.netdev.map(netdev) {
        None | Some(Netdev::Up) => true,
        Some(Netdev::Down | Netdev::Elsewhere) => false,
    }
}

fn pkeys(context: &Context, port: &Port) -> Result<Vec<PkeyRow>, Failure> {
    match port.link_layer {
        LinkLayer::InfiniBand => context.pkeys(port.number, port.attr.pkey_tbl_len).map_err(prepare),
        // RoCE has no partitions: the table's only row is the default one.
        LinkLayer::Ethernet => Ok(vec![PkeyRow { index: 0, value: 0xffff }]),
    }
}

fn region(pd: &Arc<ProtectionDomain>, layout: &Layout, options: &RdmaOptions) -> Result<Region, Failure> {
    let too_much = || {
        unsupported(
            "the messages need more memory than there can be".to_owned(),
            Some("lower the message size (-s) or the number of queue pairs (-q)"),
        )
    };
    let bytes = layout.bytes().ok_or_else(too_much)?;
    Region::new(pd, bytes, options.memory).map_err(|none| match none {
        NoRegion::Pages { bytes, errno } => unsupported(
            format!("{bytes} bytes of memory ({}) cannot be had: {errno}", super::facts::memory(options.memory)),
            Some(
                "lower message size (-s) or queue pairs (-q); huge pages must be reserved before (`sysctl vm.nr_hugepages`)",
            ),
        ),
        NoRegion::Registration(error) => prepare(error),
    })
}

fn queue_pairs(
    pd: &Arc<ProtectionDomain>,
    cq: &Arc<CompletionQueue>,
    needs: &Needs,
    options: &RdmaOptions,
    lanes: usize,
    seed: &Token,
) -> Result<Vec<QueuePair>, Failure> {
    let wishes = |lane: usize, inline_bytes| Wishes {
        sends: needs.sends,
        receives: needs.receives,
        inline_bytes,
        psn: (u32::from_be_bytes([0, seed[0], seed[1], seed[2]]) + lane as u32) & 0x00ff_ffff,
    };
    // A device that cannot carry so much inline refuses the queue pair: what nobody asked for is given up then.
    let inline_bytes = match (QueuePair::new(pd, cq, &wishes(0, needs.inline_bytes)), options.inline_bytes) {
        (Ok(_), _) => needs.inline_bytes,
        (Err(error), Some(_)) => return Err(prepare(error)),
        (Err(_), None) => 0,
    };
    (0..lanes).map(|lane| QueuePair::new(pd, cq, &wishes(lane, inline_bytes)).map_err(prepare)).collect()
}

fn receives_of(role: Role, needs: &Needs) -> u32 {
    match role {
        Role::Receiver => needs.receives,
        Role::Initiator | Role::Passive | Role::Timer | Role::Responder => 0,
    }
}

fn reads(limit: i32) -> u8 {
    u8::try_from(limit).unwrap_or(if limit > 0 { u8::MAX } else { 0 })
}

fn firmware(limits: &DeviceAttr) -> String {
    crate::data::verbs::devices::text(&limits.fw_ver)
}

fn no_hca(task: &CellTask) -> Failure {
    unsupported(
        format!("{} has no RDMA device here, which {} needs", task.device, task.case.kind),
        Some("name the rails by their RDMA devices (`--rails mlx5_4,mlx5_5`); `railmesh topo` lists them"),
    )
}

fn empty_gid(port: &Port, index: u8) -> Failure {
    unsupported(
        format!(
            "GID index {index} of {} is empty or outside its table of {}",
            port.name, port.attr.gid_tbl_len
        ),
        Some("look at `show_gids` for the indices in use, or leave the choice to the rule (without -x)"),
    )
}

fn absent(absent: Absent) -> Failure {
    unsupported(absent.reason, Some(&absent.remedy))
}

fn prepare(error: VerbError) -> Failure {
    error.failure(Phase::Prepare)
}

fn unsupported(detail: String, remedy: Option<&str>) -> Failure {
    Failure {
        kind: FailureKind::Unsupported,
        phase: Phase::Prepare,
        detail,
        remedy: remedy.map(str::to_owned),
    }
}

/// Most GIDs that travel to the peer: a port with many VLANs has hundreds.
const MOST_GIDS: usize = 16;
