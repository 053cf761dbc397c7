//! The topology for people: a table of GPUs and HCAs, then findings, then what is missing.

use std::fmt::Write as _;

use super::assess::{Assessment, Finding, Pairing, PortAssessment};
use super::model::{HcaId, Inventory};
use super::words::natural;

/// The table and everything below it, as plain text.
pub fn render(inventory: &Inventory, assessment: &Assessment) -> String {
    let rows = rows(inventory, assessment);
    let mut text =
        if rows.len() > 1 { table(rows) } else { "neither a GPU nor an HCA of this node\n".to_owned() };
    if !assessment.findings.is_empty() {
        text.push_str("\nfindings\n");
        assessment.findings.iter().for_each(|found| finding(&mut text, found));
    }
    if !assessment.missing.is_empty() {
        text.push_str("\nnot known, and what tells it\n");
        for gap in &assessment.missing {
            line(&mut text, &format!("  {}: {}", gap.what, gap.command));
        }
    }
    if !inventory.captures.is_empty() {
        text.push_str("\nread\n");
        for note in &inventory.captures {
            line(&mut text, &format!("  {}: {}", note.source, note.command));
        }
    }
    text
}

/// A line with text that came from outside: its control characters must not reach the terminal.
fn line(text: &mut String, line: &str) {
    text.extend(line.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }));
    text.push('\n');
}

fn finding(text: &mut String, found: &Finding) {
    line(
        text,
        &format!("  {} ({}) {}: {}", found.severity.name(), found.confidence, found.place, found.what),
    );
    line(text, &format!("      why: {}", found.why));
    if let Some(remedy) = &found.remedy {
        line(text, &format!("      what to do: {remedy}"));
    }
}

/// First the GPUs with their HCAs, then the HCAs that serve none.
fn rows(inventory: &Inventory, assessment: &Assessment) -> Vec<Vec<String>> {
    let mut rows = vec![COLUMNS.map(str::to_owned).to_vec()];
    for pair in &assessment.pairs {
        rows.push(paired(inventory, assessment, pair));
    }
    let used: Vec<HcaId> = assessment.pairs.iter().filter_map(|pair| pair.hca).collect();
    let mut others: Vec<&PortAssessment> =
        assessment.ports.iter().filter(|port| !used.contains(&port.hca)).collect();
    others.sort_by_key(|port| (natural(inventory.hca(port.hca).title()), port.port));
    for port in others {
        rows.push(vec![
            NOTHING.to_owned(),
            hca(inventory, port.hca),
            number(port.port),
            NOTHING.to_owned(),
            NOTHING.to_owned(),
            port.role.words().to_owned(),
            port.confidence.name().to_owned(),
            port.reason.clone(),
        ]);
    }
    rows
}

fn paired(inventory: &Inventory, assessment: &Assessment, pair: &Pairing) -> Vec<String> {
    let label = inventory
        .gpus
        .iter()
        .find(|gpu| gpu.index == pair.gpu)
        .map_or_else(|| format!("GPU{}", pair.gpu), |gpu| gpu.label.clone());
    // Of an HCA with several ports the one that is for computing is shown.
    let ports = || assessment.ports.iter().filter(|port| Some(port.hca) == pair.hca);
    let port = ports().find(|port| port.role == super::Role::Compute).or_else(|| ports().next());
    vec![
        label,
        pair.hca.map_or_else(|| NOTHING.to_owned(), |id| hca(inventory, id)),
        number(port.and_then(|port| port.port)),
        number(pair.rail),
        pair.distance.map_or(NOTHING, super::Distance::name).to_owned(),
        port.map_or(NOTHING, |port| port.role.words()).to_owned(),
        pair.confidence.name().to_owned(),
        pair.reason.clone(),
    ]
}

/// The name, and the number in the matrix where it has one.
fn hca(inventory: &Inventory, id: HcaId) -> String {
    let hca = inventory.hca(id);
    match (&hca.name, &hca.label) {
        (Some(name), Some(label)) => format!("{name} ({label})"),
        (Some(_) | None, _) => hca.title().to_owned(),
    }
}

fn number(value: Option<u16>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| value.to_string())
}

/// Columns as wide as their widest field; the last one is not padded.
fn table(rows: Vec<Vec<String>>) -> String {
    let columns = COLUMNS.len();
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let mut out = String::new();
        for (field, width) in row.iter().zip(&widths) {
            // Writing to a string cannot fail.
            let _: std::fmt::Result = write!(out, "{field:width$}  ");
        }
        line(&mut text, &out);
    }
    text
}

/// What stands where there is nothing.
const NOTHING: &str = "-";
/// The columns of the table.
const COLUMNS: [&str; 8] = ["GPU", "HCA", "port", "rail", "distance", "role", "confidence", "reason"];
