//! What a person should know: one file for each part of the node.

mod addressing;
mod counters;
mod distances;
mod fabric;
mod machine;
mod nvlink;
mod ports;

use crate::topology::model::{Hca, HcaId, Inventory, Port};
use crate::topology::words::{natural, shortened};

use super::tree::PciTree;
use super::{Confidence, Finding, Pairing, PortAssessment, Role, Severity};

/// Everything that findings are drawn from.
pub(super) struct View<'a> {
    pub(super) inventory: &'a Inventory,
    pub(super) tree: PciTree,
    pub(super) ports: &'a [PortAssessment],
    pub(super) pairs: &'a [Pairing],
}

impl<'a> View<'a> {
    /// Every port with its HCA and what it is for.
    pub(super) fn known_ports(&self) -> impl Iterator<Item = (&'a Hca, &'a Port, &'a PortAssessment)> + '_ {
        self.ports.iter().filter_map(|assessed| {
            let hca = self.inventory.hca(assessed.hca);
            let port = hca.ports.iter().find(|port| Some(port.number) == assessed.port)?;
            Some((hca, port, assessed))
        })
    }

    /// The HCAs of a role, in natural order of their names.
    fn hcas_of(&self, role: Role) -> Vec<&'a str> {
        let mut ids: Vec<HcaId> =
            self.ports.iter().filter(|port| port.role == role).map(|port| port.hca).collect();
        ids.dedup();
        let mut titles: Vec<&str> = ids.into_iter().map(|id| self.inventory.hca(id).title()).collect();
        titles.sort_by_key(|title| natural(title));
        titles
    }

    /// The labels of GPUs, shortened.
    fn gpus(&self, indexes: &[u16]) -> String {
        let label = |index: &u16| match self.inventory.gpus.iter().find(|gpu| gpu.index == *index) {
            Some(gpu) => gpu.label.clone(),
            None => format!("GPU{index}"),
        };
        shortened(&indexes.iter().map(label).collect::<Vec<_>>())
    }
}

/// `mlx5_0 port 1`; without the port where the HCA has one.
fn place(hca: &Hca, port: &Port) -> String {
    if hca.ports.len() == 1 {
        hca.title().to_owned()
    } else {
        format!("{} port {}", hca.title(), port.number)
    }
}

/// Names in natural order, shortened.
fn listed(mut names: Vec<String>) -> String {
    names.sort_by_key(|name| natural(name));
    shortened(&names)
}

/// Every finding, most serious first.
pub(super) fn findings(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    ports::find(view, &mut found);
    addressing::find(view, &mut found);
    counters::find(view, &mut found);
    nvlink::find(view, &mut found);
    distances::find(view, &mut found);
    fabric::find(view, &mut found);
    machine::find(view, &mut found);
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

/// A finding without a remedy; [`Finding::with_remedy`] adds one.
fn finding(
    kind: &'static str,
    severity: Severity,
    confidence: Confidence,
    place: impl Into<String>,
    what: impl Into<String>,
    why: impl Into<String>,
) -> Finding {
    let (place, what, why) = (place.into(), what.into(), why.into());
    Finding { kind, severity, confidence, place, what, why, remedy: None }
}

impl Finding {
    fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}
