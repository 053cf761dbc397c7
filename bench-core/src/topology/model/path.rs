//! Distances from the places of devices in the PCIe tree.

use super::{Device, Distance, Inventory, PciPath};

impl Inventory {
    /// Fills the PCIe distances that follow from the paths of devices; those that a source told stay.
    pub fn fill_distances(&mut self) {
        let places = self.places();
        for (at, a) in places.iter().enumerate() {
            for b in &places[at + 1..] {
                if let Some(distance) = distance(a, b) {
                    self.links.entry(a.device, b.device).pcie.get_or_insert(distance);
                }
            }
        }
    }

    fn places(&self) -> Vec<Place> {
        let gpus = self.gpus.iter().filter_map(|gpu| {
            let numa = gpu.numa.as_ref().and_then(|list| list.first());
            Some(Place { device: Device::Gpu(gpu.index), path: gpu.path.clone()?, numa })
        });
        let hcas = self.hca_ids().filter_map(|id| {
            let hca = self.hca(id);
            Some(Place { device: Device::Hca(id), path: hca.path.clone()?, numa: hca.numa })
        });
        gpus.chain(hcas).collect()
    }
}

/// A device and where it stands.
struct Place {
    device: Device,
    path: PciPath,
    numa: Option<u32>,
}

/// How far two places are apart; `None` where the NUMA nodes would decide and are not known.
fn distance(a: &Place, b: &Place) -> Option<Distance> {
    if a.path.host_bridge == b.path.host_bridge {
        let (x, y) = (&a.path.bridges, &b.path.bridges);
        let common = x.iter().zip(y).take_while(|(x, y)| x == y).count();
        // Below a common bridge: one more bridge on each side are two ports of the same switch.
        return Some(match common {
            0 => Distance::Phb,
            _ if x.len() - common <= 1 && y.len() - common <= 1 => Distance::Pix,
            _ => Distance::Pxb,
        });
    }
    Some(if a.numa? == b.numa? { Distance::Node } else { Distance::Sys })
}

#[cfg(test)]
mod tests {
    use super::super::{Gpu, PciAddress};
    use super::*;

    fn place(index: u16, host_bridge: &str, bridges: &[&str], numa: Option<u32>) -> Place {
        let bridges = bridges.iter().map(|text| PciAddress::parse(text).unwrap()).collect();
        Place {
            device: Device::Gpu(index),
            path: PciPath { host_bridge: host_bridge.to_owned(), bridges },
            numa,
        }
    }

    #[test]
    fn the_common_part_of_two_paths_is_the_distance() {
        let gpu = place(0, "pci0000:15", &["15:01.0", "16:00.0", "17:00.0"], Some(0));
        let of = |host: &str, bridges: &[&str], numa| distance(&gpu, &place(1, host, bridges, numa));
        assert_eq!(of("pci0000:15", &["15:01.0", "16:00.0", "17:01.0"], Some(0)), Some(Distance::Pix));
        assert_eq!(
            of("pci0000:15", &["15:01.0", "16:00.0", "17:02.0", "18:00.0"], Some(0)),
            Some(Distance::Pxb)
        );
        assert_eq!(of("pci0000:15", &["15:02.0"], Some(0)), Some(Distance::Phb));
        assert_eq!(of("pci0000:37", &["37:01.0"], Some(0)), Some(Distance::Node));
        assert_eq!(of("pci0000:97", &["97:01.0"], Some(1)), Some(Distance::Sys));
        assert_eq!(of("pci0000:97", &["97:01.0"], None), None);
    }

    #[test]
    fn a_told_distance_stays() {
        let mut inventory = Inventory::default();
        for index in 0..2 {
            let gpu: &mut Gpu = inventory.gpu_mut(index).unwrap();
            gpu.path = Some(PciPath { host_bridge: "pci0000:00".to_owned(), bridges: Vec::new() });
        }
        let (a, b) = (Device::Gpu(0), Device::Gpu(1));
        inventory.links.entry(a, b).pcie = Some(Distance::Sys);
        inventory.fill_distances();
        assert_eq!(inventory.links.pcie(a, b), Some(Distance::Sys));
    }
}
