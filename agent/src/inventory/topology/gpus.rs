//! GPUs: their places, and what the NVIDIA driver writes into procfs.

use bench_core::topology::{IdList, Inventory};

use super::files::Tree;
use super::pci::{FOLDER, PciDevice, path};

/// Reads the GPUs, numbered by address as the driver's tools do.
pub(super) fn read(tree: &Tree, devices: &[PciDevice], inventory: &mut Inventory) {
    for (index, device) in (0..).zip(devices.iter().filter(|device| device.is_gpu())) {
        let folder = &device.folder;
        let list = |file: &str| {
            tree.text(&format!("{FOLDER}/{folder}/{file}")).and_then(|text| IdList::parse(&text))
        };
        let (numa, cpus) = (list("numa_node"), list("local_cpulist"));
        let place = path(tree, folder);
        let facts = tree.text(&format!("proc/driver/nvidia/gpus/{folder}/information")).unwrap_or_default();
        let Some(gpu) = inventory.gpu_mut(index) else { return };
        gpu.bus = Some(device.address);
        gpu.path = place;
        gpu.numa = numa;
        gpu.cpus = cpus;
        gpu.name = value(&facts, "Model");
        gpu.uuid = value(&facts, "GPU UUID").filter(|uuid| uuid.starts_with("GPU-"));
    }
}

/// The value of `key: value` in a text.
fn value(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == key));
    line.map(|(_, value)| value.trim().to_owned()).filter(|value| !value.is_empty())
}
