//! Captures of every shape in small, and what must follow from them.

mod document;
mod matrices;
mod ports;
mod properties;

use super::{Assessment, Inventory, Severity, assess, import};

/// What follows from a text.
fn read(text: &str) -> (Inventory, Assessment) {
    let mut inventory = Inventory::default();
    import(&mut inventory, "test", text);
    let assessment = assess(&inventory);
    (inventory, assessment)
}

/// `GPU:HCA:rail` of every pair; `-` for what is not known.
fn pairs(inventory: &Inventory, assessment: &Assessment) -> Vec<String> {
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let one = |pair: &super::Pairing| {
        let hca = pair.hca.map(|id| inventory.hca(id).title().to_owned());
        format!("{}:{}:{}", pair.gpu, dash(hca), dash(pair.rail.map(|rail| rail.to_string())))
    };
    assessment.pairs.iter().map(one).collect()
}

/// `HCA=role/confidence` of every port.
fn roles(inventory: &Inventory, assessment: &Assessment) -> Vec<String> {
    let one = |port: &super::PortAssessment| {
        format!("{}={}/{}", inventory.hca(port.hca).title(), port.role.name(), port.confidence)
    };
    assessment.ports.iter().map(one).collect()
}

/// The severity of the first finding of a kind.
fn severity(assessment: &Assessment, kind: &str) -> Option<Severity> {
    assessment.findings.iter().find(|finding| finding.kind == kind).map(|finding| finding.severity)
}

/// The worst severity of all findings.
fn worst(assessment: &Assessment) -> Option<Severity> {
    assessment.findings.iter().map(|finding| finding.severity).max()
}
