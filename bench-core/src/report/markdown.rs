//! The report as Markdown (GitHub's tables), for tickets and wikis.

use std::fmt::Write as _;

use super::layout;
use super::model::RunReport;

/// The report as Markdown.
pub fn render(report: &RunReport) -> String {
    let mut text = format!("# {}\n\n", report.verdict.name());
    bullets(&mut text, &report.reasons);
    if !report.findings.is_empty() {
        heading(&mut text, "Findings");
        for finding in &report.findings {
            bullets(&mut text, &[layout::finding(finding)]);
            let remedy = finding.remedy.iter().map(|remedy| format!("what to do: {remedy}"));
            for detail in finding.evidence.iter().cloned().chain(remedy) {
                line(&mut text, &format!("  - {}", escape(&detail)));
            }
        }
    }
    for matrix in &report.matrices {
        let grid = layout::grid(matrix);
        heading(&mut text, &grid.title);
        bullets(&mut text, &grid.notes);
        text.push('\n');
        let header: Vec<String> = std::iter::once(String::new()).chain(grid.names.iter().cloned()).collect();
        let rows = grid.names.iter().zip(&grid.rows).map(|(name, row)| {
            let fields = std::iter::once(format!("**{name}**")).chain(row.iter().cloned());
            fields.collect()
        });
        table(&mut text, &header, rows.collect());
    }
    let latency = layout::latency_rows(report);
    if !latency.is_empty() {
        heading(&mut text, "Latency, us");
        table(&mut text, &layout::LATENCY_COLUMNS.map(str::to_owned), latency);
    }
    heading(&mut text, "Coverage");
    bullets(&mut text, &layout::coverage(report));
    let without = layout::not_tested(report);
    if !without.is_empty() {
        heading(&mut text, "Not measured");
        bullets(&mut text, &without);
    }
    line(&mut text, &format!("\nRun `{}`, started {}.", report.run_id, report.started_wall));
    text
}

fn heading(text: &mut String, title: &str) {
    line(text, &format!("\n## {}\n", escape(title)));
}

fn bullets(text: &mut String, lines: &[String]) {
    for one in lines {
        line(text, &format!("- {}", escape(one)));
    }
}

fn table(text: &mut String, header: &[String], rows: Vec<Vec<String>>) {
    let row = |fields: &[String]| {
        let escaped: Vec<String> = fields.iter().map(|field| escape(field)).collect();
        format!("| {} |", escaped.join(" | "))
    };
    line(text, &row(header));
    let aligned: Vec<&str> =
        header.iter().enumerate().map(|(i, _)| if i == 0 { "---" } else { "---:" }).collect();
    line(text, &format!("| {} |", aligned.join(" | ")));
    for fields in &rows {
        line(text, &row(fields));
    }
}

/// Text that Markdown shows as it is: a reason may hold a table's bar, a tag or a line break.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace(['\r', '\n'], " ")
}

fn line(text: &mut String, content: &str) {
    writeln!(text, "{content}").expect("writing into a string cannot fail");
}
