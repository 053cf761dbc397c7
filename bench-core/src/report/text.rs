//! The report for a terminal: plain text, the verdict first.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::layout;
use super::model::RunReport;
use crate::units::Bytes;

/// The report as plain text. Contains no colours; the caller may add some to the first word.
pub fn render(report: &RunReport) -> String {
    let mut text = format!("{}\n", report.verdict.name().to_uppercase());
    for reason in &report.reasons {
        sentence(&mut text, "  ", reason);
    }
    for finding in &report.findings {
        sentence(&mut text, "\n", &layout::finding(finding));
        for evidence in &finding.evidence {
            sentence(&mut text, "    ", evidence);
        }
        if let Some(remedy) = &finding.remedy {
            sentence(&mut text, "  what to do: ", remedy);
        }
    }
    for matrix in &report.matrices {
        let grid = layout::grid(matrix);
        line(&mut text, &format!("\n{}", grid.title));
        if !grid.notes.is_empty() {
            line(&mut text, &format!("  {}", grid.notes.join("; ")));
        }
        let header = std::iter::once(String::new()).chain(grid.names.iter().cloned());
        let rows = grid.names.iter().zip(&grid.rows).map(|(name, row)| {
            let fields = std::iter::once(name.clone()).chain(row.iter().cloned());
            fields.collect()
        });
        text.push_str(&table(std::iter::once(header.collect()).chain(rows).collect()));
    }
    latency(report, &mut text);
    line(&mut text, "\ncoverage");
    for sentence in layout::coverage(report) {
        line(&mut text, &format!("  {sentence}"));
    }
    let without = layout::not_tested(report);
    if !without.is_empty() {
        line(&mut text, "\nnot measured");
        without.iter().for_each(|cell| sentence(&mut text, "  ", cell));
    }
    line(&mut text, &format!("\nrun {}, started {}", report.run_id, report.started_wall));
    text
}

fn latency(report: &RunReport, text: &mut String) {
    let rows = layout::latency_rows(report);
    if rows.is_empty() {
        return;
    }
    line(text, "\nlatency, us");
    let header = layout::LATENCY_COLUMNS.map(str::to_owned).to_vec();
    text.push_str(&table(std::iter::once(header).chain(rows).collect()));
    let mut tests: BTreeMap<(String, u64), BTreeMap<u64, u64>> = BTreeMap::new();
    for histogram in &report.histograms {
        let buckets = tests.entry((histogram.test.to_string(), histogram.size_bytes)).or_default();
        for (le_ns, count) in &histogram.buckets_le_ns {
            *buckets.entry(*le_ns).or_insert(0) += count;
        }
    }
    for ((test, size), buckets) in tests {
        line(text, &format!("\n{test} {}, all rails: exchanges up to us", Bytes(size)));
        text.push_str(&bars(&buckets));
    }
}

/// A histogram of [`BARS`] steps that grow by the same factor from the smallest value to the largest.
fn bars(buckets: &BTreeMap<u64, u64>) -> String {
    let (Some(lowest), Some(highest)) = (buckets.keys().next(), buckets.keys().next_back()) else {
        return String::new();
    };
    let (low, high) = ((*lowest).max(1) as f64, (*highest).max(1) as f64);
    let step = (high / low).ln() / BARS as f64;
    let mut counts = [0_u64; BARS];
    for (le_ns, count) in buckets {
        let place = if step > 0.0 { ((*le_ns).max(1) as f64 / low).ln() / step } else { 0.0 };
        counts[(place as usize).min(BARS - 1)] += count;
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let used = if step > 0.0 { BARS } else { 1 };
    let rows = counts.iter().take(used).enumerate().map(|(i, count)| {
        let up_to = low * (step * (i + 1) as f64).exp() / 1e3;
        let width = (*count as f64 / most as f64 * BAR_WIDTH as f64).ceil() as usize;
        vec![format!("{up_to:.1}"), count.to_string(), format!("{:<BAR_WIDTH$}", "#".repeat(width))]
    });
    table(rows.collect())
}

/// Rows with aligned columns: the first one to the left, all others to the right.
fn table(rows: Vec<Vec<String>>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|f| f.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let fields = row.iter().zip(&widths).enumerate().map(|(i, (field, width))| match i {
            0 => format!("{field:<width$}"),
            _ => format!("{field:>width$}"),
        });
        line(&mut text, format!("  {}", fields.collect::<Vec<_>>().join("  ")).trim_end());
    }
    text
}

/// A line with text that came from a node: its control characters must not reach the terminal.
fn sentence(text: &mut String, before: &str, content: &str) {
    let shown: String = content.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line(text, &format!("{before}{shown}"));
}

fn line(text: &mut String, content: &str) {
    writeln!(text, "{content}").expect("writing into a string cannot fail");
}

/// Steps of the small histogram.
const BARS: usize = 12;
/// Characters of its longest bar.
const BAR_WIDTH: usize = 40;
