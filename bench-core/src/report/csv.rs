//! The cells as a table for spreadsheets (RFC 4180): one line a cell, an empty field where a value does not exist.

use super::model::{CellReport, PurposeWord, RunReport};

/// The text of `cells.csv`, with a header line.
pub fn render(report: &RunReport) -> String {
    let header = COLUMNS.map(|(name, _)| name.to_owned());
    let lines = report.cells.iter().map(|cell| COLUMNS.map(|(_, value)| value(cell)));
    std::iter::once(header).chain(lines).map(|fields| line(&fields)).collect()
}

fn line(fields: &[String]) -> String {
    let quoted: Vec<String> = fields.iter().map(|field| quote(field)).collect();
    format!("{}\r\n", quoted.join(","))
}

/// A field as RFC 4180 section 2 wants it: quoted if it holds a comma, a quote or a line break, quotes doubled.
fn quote(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

fn or_empty<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn purpose(cell: &CellReport) -> String {
    match cell.purpose {
        PurposeWord::Plan => "plan",
        PurposeWord::Retest => "retest",
        PurposeWord::Repair => "repair",
    }
    .to_owned()
}

/// How one field is taken from a cell.
type Field = fn(&CellReport) -> String;

/// The columns in order. Names carry the unit; a new one goes to the end.
const COLUMNS: [(&str, Field); 28] = [
    ("id", |c| c.id.to_string()),
    ("test", |c| c.test.to_string()),
    ("size_bytes", |c| c.size_bytes.to_string()),
    ("rail", |c| c.rail.to_string()),
    ("src", |c| c.src.clone()),
    ("dst", |c| c.dst.clone()),
    ("purpose", purpose),
    ("of", |c| or_empty(c.of)),
    ("status", |c| c.status.to_string()),
    ("reason", |c| c.reason.clone()),
    ("round", |c| or_empty(c.round)),
    ("epoch", |c| or_empty(c.attempt.as_ref().map(|attempt| &attempt.epoch))),
    ("attempt", |c| or_empty(c.attempt.as_ref().map(|attempt| attempt.attempt))),
    ("bw_avg_gbps", |c| or_empty(c.bandwidth.as_ref().map(|b| b.bw_avg_gbps))),
    ("bw_min_slice_gbps", |c| or_empty(c.bandwidth.as_ref().and_then(|b| b.bw_min_slice_gbps))),
    ("variation", |c| or_empty(c.bandwidth.as_ref().and_then(|b| b.variation))),
    ("sender_gbps", |c| or_empty(c.bandwidth.as_ref().and_then(|b| b.sender_gbps))),
    ("receiver_gbps", |c| or_empty(c.bandwidth.as_ref().and_then(|b| b.receiver_gbps))),
    ("message_rate_mpps", |c| or_empty(c.bandwidth.as_ref().and_then(|b| b.message_rate_mpps))),
    ("retransmits", |c| or_empty(c.bandwidth.as_ref().and_then(|b| b.retransmits))),
    ("lat_count", |c| or_empty(c.latency.as_ref().map(|l| l.count))),
    ("lat_min_us", |c| or_empty(c.latency.as_ref().map(|l| l.lat_min_us))),
    ("lat_p50_us", |c| or_empty(c.latency.as_ref().map(|l| l.lat_p50_us))),
    ("lat_p90_us", |c| or_empty(c.latency.as_ref().map(|l| l.lat_p90_us))),
    ("lat_p99_us", |c| or_empty(c.latency.as_ref().map(|l| l.lat_p99_us))),
    ("lat_p999_us", |c| or_empty(c.latency.as_ref().map(|l| l.lat_p999_us))),
    ("lat_max_us", |c| or_empty(c.latency.as_ref().map(|l| l.lat_max_us))),
    ("overlap_share", |c| or_empty(c.concurrency.overlap_share)),
];
