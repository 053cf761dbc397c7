//! GIDs: the addresses of RDMA ports.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// A GID, 16 bytes in network order (IBTA volume 1, 4.1.1; for RoCE an IP address).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gid(pub [u8; 16]);

/// What protocol a row of the GID table is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GidKind {
    /// InfiniBand.
    InfiniBand,
    /// RoCE v1: an Ethernet frame type of its own, not routed.
    RoceV1,
    /// RoCE v2: UDP port 4791, routed by IP.
    RoceV2,
}

/// A row of a port's GID table that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GidRow {
    /// Its index.
    pub index: u8,
    /// The GID.
    pub gid: Gid,
    /// Its protocol.
    pub kind: GidKind,
}

/// What family of address a GID is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GidFamily {
    /// An IPv4 address mapped into IPv6.
    Ipv4,
    /// An IPv6 address, or an InfiniBand GID, that is valid beyond its link.
    Ipv6,
    /// Valid on its link only (fe80::/10), which on InfiniBand is the default subnet prefix.
    LinkLocal,
}

impl Gid {
    /// Whether the row is empty.
    pub fn is_zero(self) -> bool {
        self.0 == [0; 16]
    }

    /// The first 64 bits: on InfiniBand the subnet's prefix.
    pub fn subnet_prefix(self) -> u64 {
        self.0.iter().take(8).fold(0, |prefix, byte| prefix << 8 | u64::from(*byte))
    }

    /// The IP address that it is.
    pub fn ip(self) -> IpAddr {
        Ipv6Addr::from(self.0).to_canonical()
    }

    /// What family of address it is.
    pub fn family(self) -> GidFamily {
        match self.ip() {
            IpAddr::V4(_) => GidFamily::Ipv4,
            IpAddr::V6(v6) if v6.is_unicast_link_local() => GidFamily::LinkLocal,
            IpAddr::V6(_) => GidFamily::Ipv6,
        }
    }

    /// How many leading bits two GIDs share.
    pub(super) fn shared_bits(self, other: Self) -> u32 {
        (u128::from_be_bytes(self.0) ^ u128::from_be_bytes(other.0)).leading_zeros()
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Ipv6Addr::from(self.0))
    }
}

impl GidKind {
    /// The word of the tools.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InfiniBand => "InfiniBand",
            Self::RoceV1 => "RoCE v1",
            Self::RoceV2 => "RoCE v2",
        }
    }
}

impl fmt::Display for GidKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for GidRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GID {} {} ({})", self.index, self.gid, self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(text: &str) -> Gid {
        Gid(text.parse::<Ipv6Addr>().expect("an address").octets())
    }

    #[test]
    fn families_are_told_apart() {
        for (text, family) in [
            ("::ffff:10.0.0.1", GidFamily::Ipv4),
            ("fe80::5054:ff:fe00:1", GidFamily::LinkLocal),
            ("2001:db8::1", GidFamily::Ipv6),
            ("fec0::1", GidFamily::Ipv6),
        ] {
            assert_eq!(gid(text).family(), family, "{text}");
        }
        assert!(gid("::").is_zero() && !gid("::1").is_zero());
        assert_eq!(gid("fe80:0:0:1::2").subnet_prefix(), 0xfe80_0000_0000_0001);
    }

    #[test]
    fn a_row_is_told_with_index_and_kind() {
        let row = GidRow { index: 3, gid: gid("::ffff:10.0.0.1"), kind: GidKind::RoceV2 };
        assert_eq!(row.to_string(), "GID 3 ::ffff:10.0.0.1 (RoCE v2)");
    }
}
