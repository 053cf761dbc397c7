//! PCI devices and their places in the tree.

use bench_core::topology::{PciAddress, PciPath};

use super::files::Tree;

/// A PCI device.
#[derive(Debug)]
pub(super) struct PciDevice {
    pub(super) address: PciAddress,
    /// The name of its folder.
    pub(super) folder: String,
    vendor: u32,
    /// Class, subclass and programming interface.
    class: u32,
}

impl PciDevice {
    /// An NVIDIA device that is a 3D or VGA controller.
    pub(super) fn is_gpu(&self) -> bool {
        self.vendor == NVIDIA && [0x0302, 0x0300].contains(&(self.class >> 8))
    }

    /// A network controller of Mellanox: base class 02.
    pub(super) fn is_mellanox_nic(&self) -> bool {
        self.vendor == MELLANOX && self.class >> 16 == 0x02
    }
}

/// Every PCI device, by address.
pub(super) fn devices(tree: &Tree) -> Vec<PciDevice> {
    let hex = |path: String| {
        let text = tree.text(&path)?;
        u32::from_str_radix(text.trim_start_matches("0x"), 16).ok()
    };
    let device = |folder: String| {
        let address = PciAddress::parse(&folder)?;
        let vendor = hex(format!("{FOLDER}/{folder}/vendor"))?;
        let class = hex(format!("{FOLDER}/{folder}/class"))?;
        Some(PciDevice { address, folder, vendor, class })
    };
    let mut devices: Vec<PciDevice> = tree.list(FOLDER).into_iter().filter_map(device).collect();
    devices.sort_by_key(|device| device.address);
    devices
}

/// The bridges above a device, from the target of its link.
pub(super) fn path(tree: &Tree, folder: &str) -> Option<PciPath> {
    parse_path(&tree.link(&format!("{FOLDER}/{folder}"))?)
}

/// `../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0` without the device itself.
fn parse_path(target: &str) -> Option<PciPath> {
    let mut parts = target.split('/').skip_while(|part| !is_host_bridge(part));
    let host_bridge = parts.next()?.to_owned();
    let mut bridges: Vec<PciAddress> = parts.map_while(PciAddress::parse).collect();
    bridges.pop()?;
    Some(PciPath { host_bridge, bridges })
}

/// `pci0000:15`
fn is_host_bridge(part: &str) -> bool {
    part.strip_prefix("pci").is_some_and(|rest| rest.contains(':') && !rest.contains('.'))
}

/// Where the kernel lists PCI devices.
pub(super) const FOLDER: &str = "sys/bus/pci/devices";
/// NVIDIA's vendor number.
const NVIDIA: u32 = 0x10de;
/// Mellanox's vendor number.
const MELLANOX: u32 = 0x15b3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bridges_of_a_device_are_the_folders_above_it() {
        let path = parse_path("../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0").unwrap();
        assert_eq!(path.host_bridge, "pci0000:15");
        assert_eq!(path.bridges.len(), 2);
        assert_eq!(parse_path("../../../devices/pci0000:00/0000:00:02.0").unwrap().bridges, []);
        assert_eq!(parse_path("../../devices/virtual/net/lo"), None);
    }
}
