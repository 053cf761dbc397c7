//! The contract: one fixed run gives these bytes, every form is drawn from the JSON alone, and nothing is lost.

use std::path::PathBuf;

use super::*;
use crate::ids::{CellId, NodeIndex, RailId};
use crate::judge::testing::Fabric;
use crate::judge::{CellStatus, Direction, Part, Rails, RunVerdict, Side};
use crate::plan::TestKind;
use crate::record::{Loss, LossWord, Phase, RunRecord};

/// Three nodes, two rails, both kinds of test; one slow side, one lost cell with awkward text.
fn small() -> (Fabric, Vec<RunRecord>) {
    let part = Part::Node { node: NodeIndex(2), rails: Rails::One(RailId(1)), side: Side::Receive };
    let mut fabric = Fabric::new(3, 2, 42).with(part, 0.3);
    fabric.kinds = vec![TestKind::TcpBw, TestKind::TcpLat];
    let mut records = fabric.records_with_retests();
    let lost = CellId(0);
    records.retain(|record| !matches!(record, RunRecord::Observed(seen) if seen.key.cell == lost));
    let end = records.len() - 1;
    records.insert(
        end,
        RunRecord::Lost(Loss {
            cell: lost,
            attempt: None,
            word: LossWord::Timeout,
            node: Some(NodeIndex(1)),
            phase: Some(Phase::Armed),
            reason: "n1 said \"later\", | then\nnothing".into(),
        }),
    );
    (fabric, records)
}

fn report(fabric: &Fabric, records: &[RunRecord]) -> RunReport {
    RunReport::from_cells(records, fabric).expect("a run of this fabric")
}

#[expect(clippy::disallowed_methods, reason = "a golden file is compared with, and rewritten when asked to")]
/// Compares with a file beside this one. UPDATE_GOLDEN=1 writes it; the difference is then a change of the contract.
fn golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/report/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("the golden folder is writable");
    }
    let expected = std::fs::read_to_string(&path).expect("the golden file is part of the repository");
    assert!(expected == text, "{name} differs; run with UPDATE_GOLDEN=1 and look at the diff:\n{text}");
}

#[test]
fn one_fixed_run_gives_the_same_bytes_in_every_form() {
    let (fabric, records) = small();
    let report = report(&fabric, &records);
    golden("small.json", &report.to_json());
    golden("small.txt", &text::render(&report));
    golden("small.md", &markdown::render(&report));
    golden("small.csv", &csv::render(&report));
}

#[test]
fn a_report_reads_back_whole_and_draws_the_same_forms() {
    let (fabric, records) = small();
    let report = report(&fabric, &records);
    let back = RunReport::from_json(&report.to_json()).expect("our own JSON");
    assert_eq!(back, report);
    assert_eq!(text::render(&back), text::render(&report));
}

#[test]
fn the_top_level_is_the_contract() {
    let (fabric, records) = small();
    let json: serde_json::Value = serde_json::from_str(&report(&fabric, &records).to_json()).expect("JSON");
    let keys: Vec<&str> = json.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "schema",
            "run_id",
            "verdict",
            "reasons",
            "started_wall",
            "end",
            "plan",
            "schedule",
            "nodes",
            "rails",
            "cells",
            "matrices",
            "histograms",
            "findings"
        ]
    );
    assert_eq!(json["schema"], SCHEMA);
    assert_eq!(json["verdict"], "fail");
}

#[test]
fn another_schema_or_another_file_is_refused_with_a_reason() {
    let (fabric, records) = small();
    let json = report(&fabric, &records).to_json();
    let other = json.replace("railmesh/result/1", "railmesh/result/2");
    let error = RunReport::from_json(&other).expect_err("another version");
    assert_eq!(
        error.to_string(),
        "result has schema \"railmesh/result/2\", this build reads \"railmesh/result/1\"; \
         use the railmesh that wrote it"
    );
    assert!(matches!(RunReport::from_json("{}"), Err(ReportError::Json { .. })));
    let cut = &json[..json.len() / 2];
    assert!(matches!(RunReport::from_json(cut), Err(ReportError::Json { .. })));
}

#[test]
fn a_merged_histogram_holds_the_planned_cells_and_no_retest() {
    let (fabric, records) = small();
    let report = report(&fabric, &records);
    assert!(report.cells.iter().any(|cell| cell.purpose != PurposeWord::Plan));
    assert_eq!(report.histograms.len(), 2);
    for histogram in &report.histograms {
        let counts = report
            .cells
            .iter()
            .filter(|cell| cell.purpose == PurposeWord::Plan && cell.rail == histogram.rail)
            .filter_map(|cell| Some(cell.latency.as_ref()?.count));
        assert_eq!(histogram.count, counts.sum::<u64>());
        assert_eq!(histogram.count, 600);
        let buckets: u64 = histogram.buckets_le_ns.iter().map(|(_, count)| count).sum();
        assert_eq!(buckets, histogram.count);
        use base64::Engine as _;
        let bytes =
            base64::engine::general_purpose::STANDARD.decode(&histogram.hdr_v2_base64).expect("base64");
        let back = crate::measure::Histogram::from_v2(&bytes, histogram.clipped).expect("HdrHistogram V2");
        assert_eq!(back.len(), histogram.count);
    }
}

#[test]
fn a_lost_cell_is_null_in_the_matrix_and_listed_with_its_reason() {
    let (fabric, records) = small();
    let report = report(&fabric, &records);
    let matrix = report.matrices[0].bw_avg_gbps.as_ref().expect("bandwidth first");
    assert_eq!(matrix[0][1], None);
    assert!(matrix[1][0].is_some());
    assert_eq!(report.cells[0].status, CellStatus::Timeout);
    assert_eq!(report.cells[0].bandwidth, None);
    let text = text::render(&report);
    assert!(text.contains("not measured\n  tcp_bw 128K, rail 0, n0 -> n1: timeout: n1 said"), "{text}");
}

#[test]
fn control_characters_of_a_node_do_not_reach_the_terminal() {
    let (fabric, mut records) = small();
    for record in &mut records {
        if let RunRecord::Lost(loss) = record {
            loss.reason = "\u{1b}[2Jgone".into();
        }
    }
    let text = text::render(&report(&fabric, &records));
    assert!(text.contains(" [2Jgone"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn csv_quotes_as_rfc_4180_and_leaves_missing_values_empty() {
    let (fabric, records) = small();
    let csv = csv::render(&report(&fabric, &records));
    let header = csv.lines().next().expect("a header");
    assert!(header.starts_with("id,test,size_bytes,rail,src,dst,purpose,of,status,reason,round"));
    let lost = "0,tcp_bw,131072,0,n0,n1,plan,,timeout,\"n1 said \"\"later\"\", | then\nnothing\",,,,,,";
    assert!(csv.contains(lost), "{csv}");
    assert!(!csv.contains(",-,"), "{csv}");
}

#[test]
fn markdown_keeps_its_tables_whole_whatever_a_reason_holds() {
    let (fabric, records) = small();
    let markdown = markdown::render(&report(&fabric, &records));
    assert!(markdown.contains("n1 said \"later\", \\| then nothing"), "{markdown}");
}

#[test]
fn a_large_matrix_is_cut_to_the_nodes_with_the_worst_cells_and_says_so() {
    let pair = Part::Pair {
        a: NodeIndex(3),
        b: NodeIndex(19),
        rails: Rails::One(RailId(0)),
        direction: Direction::Both,
    };
    let fabric = Fabric::new(20, 1, 5).with(pair, 0.3);
    let text = text::render(&report(&fabric, &fabric.records()));
    assert!(text.contains("cut to the 16 of 20 nodes with the worst cells"), "{text}");
    let header = text
        .lines()
        .find(|line| line.trim_start().starts_with('n') && line.split_whitespace().count() == 16)
        .expect("a header of 16 nodes");
    for node in ["n3", "n19"] {
        assert!(header.split_whitespace().any(|name| name == node), "{header}");
    }
}

#[test]
fn gaps_between_rounds_are_counted_from_window_to_window() {
    let (fabric, records) = small();
    let schedule = report(&fabric, &records).schedule;
    let gaps = schedule.gaps.expect("several rounds");
    assert_eq!((gaps.p50_ms, gaps.p99_ms, gaps.max_ms), (2.0, 2.0, 2.0));
    assert_eq!((schedule.rounds_planned, schedule.rounds_played), (4, 4));
    assert_eq!(gaps.count, schedule.rounds_played + schedule.rounds_added - 1);
    assert_eq!((schedule.coverage.planned_pairs, schedule.coverage.measured_pairs), (12, 12));
}

#[test]
fn records_that_stop_early_give_a_report_that_says_so() {
    let (fabric, records) = small();
    let report = report(&fabric, &records[..1]);
    assert_eq!((report.verdict, report.end.word), (RunVerdict::Incomplete, EndWord::Open));
    assert_eq!((report.histograms.len(), report.schedule.gaps.is_none()), (0, true));
    let text = text::render(&report);
    assert!(text.starts_with("INCOMPLETE\n  24 of 24 cells were not tested"), "{text}");
    assert!(text.contains("and 4 more; cells.csv and the JSON have all"), "{text}");
}
