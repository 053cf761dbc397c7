//! Which HCA serves which GPU, and the rails that follow.

use std::collections::BTreeMap;

use crate::topology::model::{Distance, Gpu, HcaId, Inventory, Row};
use crate::topology::words::{count, shortened};

use super::matching::assign;
use super::tree::{PciTree, distance};
use super::{Confidence, Pairing, PortAssessment, Role};

/// The HCA of every GPU, in GPU order.
pub(super) fn pair(inventory: &Inventory, tree: PciTree, ports: &[PortAssessment]) -> Vec<Pairing> {
    let pairer = Pairer::new(inventory, tree, ports);
    let mut pairs = pairer.pairs();
    number_rails(&mut pairs, pairer.is_one_each());
    pairs
}

/// What pairing goes by.
struct Pairer<'a> {
    inventory: &'a Inventory,
    tree: PciTree,
    /// The compute HCAs with how sure that role is; those of unknown role where no compute HCA is known.
    hcas: Vec<(HcaId, Confidence)>,
    /// HCAs that could serve a GPU: also those of unknown role.
    possible: usize,
}

impl<'a> Pairer<'a> {
    fn new(inventory: &'a Inventory, tree: PciTree, ports: &[PortAssessment]) -> Self {
        let of = |role: Role| {
            let mut found: BTreeMap<HcaId, Confidence> = BTreeMap::new();
            for port in ports.iter().filter(|port| port.role == role) {
                let known = found.entry(port.hca).or_insert(port.confidence);
                *known = (*known).max(port.confidence);
            }
            found
        };
        let (compute, unknown) = (of(Role::Compute), of(Role::Unknown));
        let possible = compute.len() + unknown.keys().filter(|id| !compute.contains_key(id)).count();
        let hcas = if compute.is_empty() { unknown } else { compute };
        Self { inventory, tree, hcas: hcas.into_iter().collect(), possible }
    }

    fn is_one_each(&self) -> bool {
        self.possible >= self.inventory.gpus.len()
    }

    fn pairs(&self) -> Vec<Pairing> {
        let gpus = &self.inventory.gpus;
        let distances: Vec<Vec<Option<Distance>>> = match self.tree {
            PciTree::NotShown | PciTree::Hidden(_) => {
                gpus.iter().map(|_| vec![None; self.hcas.len()]).collect()
            }
            PciTree::Shown => gpus
                .iter()
                .map(|gpu| self.hcas.iter().map(|(id, _)| self.distance(gpu, *id)).collect())
                .collect(),
            PciTree::Separate => gpus
                .iter()
                .map(|gpu| self.hcas.iter().map(|(id, _)| self.same_node(gpu, *id)).collect())
                .collect(),
        };
        let seats = if self.is_one_each() { 1 } else { gpus.len().div_ceil(self.possible.max(1)) };
        let chosen = assign(&distances, self.hcas.len(), seats);
        let mut users: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (gpu, hca) in gpus.iter().zip(&chosen) {
            if let Some(hca) = hca {
                users.entry(*hca).or_default().push(&gpu.label);
            }
        }
        let decided = gpus.iter().zip(&chosen).zip(&distances);
        decided
            .map(|((gpu, chosen), row)| match chosen {
                Some(at) => self.pairing(gpu, *at, row, users.get(at).map_or(&[], Vec::as_slice)),
                None => self.nobody(gpu),
            })
            .collect()
    }

    /// Where cells of the GPU are cut off, a nearer HCA may be among them: only PIX, which nothing beats, counts then.
    fn distance(&self, gpu: &Gpu, hca: HcaId) -> Option<Distance> {
        let known = distance(self.inventory, gpu.index, hca)?;
        (known == Distance::Pix || !self.is_cut(gpu)).then_some(known)
    }

    fn is_cut(&self, gpu: &Gpu) -> bool {
        let in_matrix = |id: &HcaId| self.inventory.hca(*id).row != Row::NoMatrix;
        let lacks = |id: HcaId| distance(self.inventory, gpu.index, id).is_none();
        match gpu.row {
            Row::Missing | Row::Cut => self.inventory.hca_ids().filter(in_matrix).any(lacks),
            Row::NoMatrix | Row::Whole => false,
        }
    }

    /// On Grace the distances tell nothing; the NUMA node does, where it is known.
    fn same_node(&self, gpu: &Gpu, hca: HcaId) -> Option<Distance> {
        let own = gpu.numa.as_ref()?.first()?;
        (self.inventory.hca(hca).numa? == own).then_some(Distance::Node)
    }

    fn pairing(&self, gpu: &Gpu, at: usize, row: &[Option<Distance>], users: &[&str]) -> Pairing {
        let (hca, role) = self.hcas[at];
        let near = row[at];
        let alike: Vec<HcaId> = self
            .hcas
            .iter()
            .zip(row)
            .filter(|((id, _), other)| *id != hca && **other == near)
            .map(|((id, _), _)| *id)
            .collect();
        let nearer = row.iter().flatten().any(|other| Some(*other) < near);
        let trivial = self.inventory.gpus.len() == 1 && self.inventory.hcas.len() == 1;
        let base = match near {
            _ if trivial => Confidence::Likely,
            _ if !alike.is_empty() || nearer => Confidence::Assumed,
            Some(Distance::Pix | Distance::Pxb) if role >= Confidence::Likely => Confidence::Proven,
            Some(Distance::Pix | Distance::Pxb) => Confidence::Likely,
            Some(Distance::Phb | Distance::Node) => role.min(Confidence::Likely),
            Some(Distance::Sys) | None => Confidence::Assumed,
        };
        Pairing {
            gpu: gpu.index,
            hca: Some(hca),
            rail: None,
            distance: self.distance(gpu, hca),
            confidence: base.max(Confidence::Assumed),
            reason: self.reason(gpu, hca, &alike, nearer, users),
            alike,
        }
    }

    fn reason(&self, gpu: &Gpu, hca: HcaId, alike: &[HcaId], nearer: bool, users: &[&str]) -> String {
        let title = |id: &HcaId| self.inventory.hca(*id).title();
        let way = match (self.tree, self.distance(gpu, hca)) {
            (PciTree::Separate, _) => "on the same NUMA node".to_owned(),
            (PciTree::NotShown | PciTree::Hidden(_) | PciTree::Shown, Some(distance)) => {
                distance.name().to_owned()
            }
            (PciTree::NotShown | PciTree::Hidden(_) | PciTree::Shown, None) => "near".to_owned(),
        };
        let mut reason = match (alike.is_empty(), self.hcas.len()) {
            (true, 1) => format!("{way}; the only HCA for it"),
            (true, _) if nearer => format!("{way}; the nearer ones serve other GPUs"),
            (true, all) => format!("{way}, the nearest of {}", count(all, "compute HCA")),
            (false, _) => {
                let names: Vec<&str> = alike.iter().map(title).collect();
                format!("{way}, as is {}: taken in order", shortened(&names))
            }
        };
        let others: Vec<&str> = users.iter().copied().filter(|label| *label != gpu.label).collect();
        if !others.is_empty() {
            reason.push_str(&format!("; shared with {}", shortened(&others)));
        }
        reason
    }

    /// Why no HCA can be named.
    fn nobody(&self, gpu: &Gpu) -> Pairing {
        let reason = match (self.tree, gpu.row) {
            _ if self.inventory.hcas.is_empty() => "no HCA is known".to_owned(),
            (PciTree::Hidden(distance), _) => {
                format!("every distance is {distance}: the PCIe tree is hidden, order would be a guess")
            }
            (PciTree::Separate, _) => {
                "every distance is SYS, as is normal on Grace: the NUMA nodes of the HCAs would tell"
                    .to_owned()
            }
            (PciTree::Shown, Row::Missing | Row::Cut) => {
                format!("the row of {} is missing in the capture", gpu.label)
            }
            (PciTree::Shown, Row::NoMatrix | Row::Whole) if self.hcas.is_empty() => {
                "no HCA is one of the compute fabric".to_owned()
            }
            (PciTree::Shown, Row::NoMatrix | Row::Whole) => {
                "its distance to the compute HCAs is not known".to_owned()
            }
            (PciTree::NotShown, _) => "no distance between GPUs and HCAs is known".to_owned(),
        };
        Pairing {
            gpu: gpu.index,
            hca: None,
            rail: None,
            distance: None,
            alike: Vec::new(),
            confidence: Confidence::Unknown,
            reason,
        }
    }
}

/// Rails in GPU order. With an HCA for each GPU, the rail is the GPU's place; with fewer, rails are counted as their
/// HCAs appear, and not beyond a GPU whose HCA is not known.
fn number_rails(pairs: &mut [Pairing], one_each: bool) {
    let mut seen: Vec<HcaId> = Vec::new();
    for (place, pair) in pairs.iter_mut().enumerate() {
        let Some(hca) = pair.hca else {
            if one_each {
                continue;
            }
            return;
        };
        let counted = seen.iter().position(|known| *known == hca).unwrap_or_else(|| {
            seen.push(hca);
            seen.len() - 1
        });
        pair.rail = u16::try_from(if one_each { place } else { counted }).ok();
    }
}
