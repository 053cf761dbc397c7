//! GPUs and HCAs of this machine, from sysfs and procfs below a root path.
//!
//! Nothing is loaded and nothing is asked of a driver, so it works without any vendor library. What only a library
//! tells (NVLink, for one) stays unknown and is said to be missing.

mod files;
mod gpus;
mod hcas;
mod machine;
mod pci;

#[cfg(test)]
mod tests;

use std::path::Path;

use bench_core::topology::{CaptureNote, Gap, Inventory};

use files::Tree;

/// Reads the GPUs, the HCAs and their places below `root` (`/` for the live machine).
pub fn read_topology(root: &Path) -> Inventory {
    let tree = Tree::new(root);
    let mut inventory = Inventory::default();
    let note = CaptureNote { command: "sysfs and procfs".to_owned(), source: root.display().to_string() };
    inventory.captures.push(note);
    inventory.platform = machine::read(&tree);
    let devices = pci::devices(&tree);
    gpus::read(&tree, &devices, &mut inventory);
    hcas::read(&tree, root, &mut inventory);
    absences(&tree, &devices, &mut inventory);
    inventory.fill_distances();
    inventory
}

/// What is not here, and how one would make sure.
fn absences(tree: &Tree, devices: &[pci::PciDevice], inventory: &mut Inventory) {
    let mut gap = |what: &str, command: &str| {
        inventory.gaps.push(Gap { what: what.to_owned(), command: command.to_owned() });
    };
    if devices.is_empty() {
        gap("no PCI device is visible below sys/bus/pci: GPUs and HCAs cannot be found", "lspci");
    } else if !devices.iter().any(pci::PciDevice::is_gpu) {
        gap("no PCI device is an NVIDIA GPU", "lspci -d 10de:");
    }
    if tree.list("sys/class/infiniband").is_empty() {
        let cards = devices.iter().filter(|device| device.is_mellanox_nic()).count();
        match cards {
            0 => gap(
                "no RDMA device: sys/class/infiniband is absent or empty, and there is no Mellanox NIC",
                "lspci -d 15b3:",
            ),
            cards => gap(
                &format!(
                    "no RDMA device, though a Mellanox NIC is there ({cards} PCI functions): its RDMA driver is not loaded"
                ),
                "modprobe mlx5_ib; rdma link",
            ),
        }
    }
}
