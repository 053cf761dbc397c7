//! What sysfs and procfs say of a network device.

use std::fs;
use std::path::Path;

use bench_core::topology::PciAddress;

/// What sysfs says of a device.
pub(super) struct DeviceFacts {
    pub(super) numa: Option<u32>,
    pub(super) line_rate_bps: Option<u64>,
    pub(super) mtu: Option<u32>,
}

impl DeviceFacts {
    pub(super) fn read(root: &Path, device: &str) -> Self {
        let number = |file: &str| -> Option<i64> {
            fs::read_to_string(root.join("sys/class/net").join(device).join(file)).ok()?.trim().parse().ok()
        };
        Self {
            // The kernel says -1 where it knows no NUMA node, and -1 Mb/s where a device has no speed.
            numa: number("device/numa_node").and_then(|n| u32::try_from(n).ok()),
            line_rate_bps: line_rate(number("speed"), is_virtual(root, device)),
            mtu: number("mtu").and_then(|n| u32::try_from(n).ok()),
        }
    }
}

/// A virtual device (veth, tun) reports a made-up speed: 10 Gb/s for veth whatever it does.
fn line_rate(megabits: Option<i64>, is_virtual: bool) -> Option<u64> {
    let megabits = u64::try_from(megabits?).ok().filter(|n| *n > 0)?;
    (!is_virtual).then_some(megabits * 1_000_000)
}

fn is_virtual(root: &Path, device: &str) -> bool {
    !root.join("sys/class/net").join(device).join("device").exists()
}

pub(super) fn is_up(root: &Path, device: &str) -> bool {
    let state = fs::read_to_string(root.join("sys/class/net").join(device).join("operstate"));
    state.is_ok_and(|text| text.trim() == "up" || text.trim() == "unknown")
}

/// Bridges and container networks are never a rail.
pub(super) fn is_software(root: &Path, device: &str) -> bool {
    let dir = root.join("sys/class/net").join(device);
    dir.join("bridge").exists() || dir.join("tun_flags").exists()
}

/// The device of the IPv4 default route (`/proc/net/route`: destination and mask 00000000).
pub(in crate::inventory) fn default_route_device(root: &Path) -> Option<String> {
    let table = fs::read_to_string(root.join("proc/net/route")).ok()?;
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.get(1) == Some(&"00000000") && fields.get(7) == Some(&"00000000"))
            .then(|| fields[0].to_owned())
    })
}

/// The PCI address of a network device.
pub(super) fn pci_address(root: &Path, device: &str) -> Option<PciAddress> {
    let target = fs::read_link(root.join("sys/class/net").join(device).join("device")).ok()?;
    PciAddress::parse(target.file_name()?.to_str()?)
}
