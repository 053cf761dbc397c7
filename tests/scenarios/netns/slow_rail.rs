//! One rail of one node limited to a tenth by the kernel: the verdict names node, rail and side, and nothing else.
//!
//! Proof, because the limit is a token bucket that the product knows nothing of, every other rail has the same bucket
//! at the line rate, and the assertions are on the whole list of named parts and on every failing cell.

use bench_core::judge::CellStatus;
use bench_core::report::{PartReport, PartWord};

use crate::support::fabric::{Fabric, TENTH, Way};
use crate::support::report::Swept;

#[test]
#[ignore = "needs root and network namespaces"]
fn a_rail_slow_both_ways_is_named_with_its_node() {
    let fabric = Fabric::new(4, 2);
    fabric.limit(2, 1, Way::Both, TENTH);
    let swept = fabric.mesh().start().sweep(&["-t", "tcp_bw", "-D", "500ms"]);
    swept.exits(1).has_full_matrices(4, 2);
    names_only(&swept, PartWord::Node);
    for cell in failing(&swept) {
        assert!(cell.0 == "n2" || cell.1 == "n2", "{cell:?} failed; {swept}");
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_rail_slow_in_sending_is_named_with_its_side() {
    let fabric = Fabric::new(4, 2);
    fabric.limit(2, 1, Way::Send, TENTH);
    let swept = fabric.mesh().start().sweep(&["-t", "tcp_bw", "-D", "500ms"]);
    swept.exits(1).has_full_matrices(4, 2);
    names_only(&swept, PartWord::NodeSend);
    for cell in failing(&swept) {
        assert_eq!(cell.0, "n2", "{cell:?} failed; {swept}");
    }
}

/// The only slow part is n2 on rail 1, in this way.
#[track_caller]
fn names_only(swept: &Swept, word: PartWord) {
    let parts: Vec<&PartReport> = swept.slow().iter().filter_map(|finding| finding.part.as_ref()).collect();
    let expected = PartReport { word, nodes: vec!["n2".to_owned()], rail: Some(1) };
    assert_eq!(parts, [&expected], "{swept}");
    let others = swept.report().findings.iter().filter(|finding| finding.part.as_ref() != Some(&expected));
    for finding in others {
        assert_eq!(finding.part, None, "a second part is named; {swept}");
    }
}

/// Source and destination of every cell that failed; all of them are on rail 1.
#[track_caller]
fn failing(swept: &Swept) -> Vec<(String, String)> {
    let failing = swept.report().cells.iter().filter(|cell| cell.status == CellStatus::Fail);
    let ends: Vec<(String, String)> = failing
        .map(|cell| {
            assert_eq!(cell.rail, 1, "cell {} failed; {swept}", cell.id);
            (cell.src.clone(), cell.dst.clone())
        })
        .collect();
    assert!(ends.len() >= 3, "n2 met three peers; {swept}");
    ends
}
