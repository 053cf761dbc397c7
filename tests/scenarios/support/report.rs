//! Questions to the result.json that a sweep left: each assertion shows the report when it fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bench_core::judge::{CellStatus, FindingKind};
use bench_core::report::{CellReport, FindingReport, PurposeWord, RunReport, text};

use super::process::Finished;

/// A sweep that ended, with its result.
#[derive(Debug)]
pub(crate) struct Swept {
    /// The client.
    pub(crate) finished: Finished,
    /// The result of the run folder; none if the run never began.
    result: Option<RunReport>,
}

impl Swept {
    /// The result in run folder `out`.
    pub(crate) fn of(finished: Finished, out: &Path) -> Self {
        let result = fs::read_to_string(out.join("result.json")).ok().map(|json| {
            RunReport::from_json(&json).unwrap_or_else(|error| panic!("result.json: {error}\n{json}"))
        });
        Self { finished, result }
    }

    /// The result.
    #[track_caller]
    pub(crate) fn report(&self) -> &RunReport {
        let Some(report) = &self.result else {
            panic!("no result.json; {}", self.finished);
        };
        report
    }

    /// Asserts the exit code of the client.
    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.finished.code, code, "exit code; {self}");
        self
    }

    /// Asserts that the client said `text`.
    #[track_caller]
    pub(crate) fn finished_says(&self, text: &str) -> &Self {
        assert!(self.finished.stderr.contains(text), "{text:?} is missing; {self}");
        self
    }

    /// Asserts that every matrix holds a figure for every ordered pair, and that there is one a test and rail.
    #[track_caller]
    pub(crate) fn has_full_matrices(&self, nodes: usize, rails: usize) -> &Self {
        let report = self.report();
        assert_eq!(report.matrices.len(), report.plan.cases.len() * rails, "matrices; {self}");
        for matrix in &report.matrices {
            let figures = [&matrix.bw_avg_gbps, &matrix.lat_p50_us, &matrix.lat_p99_us];
            for rows in figures.into_iter().flatten() {
                assert_eq!(rows.len(), nodes, "rows; {self}");
                for (src, row) in rows.iter().enumerate() {
                    assert_eq!(row.len(), nodes, "columns; {self}");
                    for (dst, figure) in row.iter().enumerate() {
                        assert_eq!(
                            figure.is_some_and(|figure| figure > 0.0),
                            src != dst,
                            "rail {}, row {src}, column {dst}; {self}",
                            matrix.rail
                        );
                    }
                }
            }
        }
        self
    }

    /// Asserts that each merged histogram holds exactly the exchanges that its cells counted.
    #[track_caller]
    pub(crate) fn histograms_add_up(&self) -> &Self {
        let report = self.report();
        let mut sums: BTreeMap<(u64, u16), u64> = BTreeMap::new();
        for cell in report.cells.iter().filter(|cell| cell.purpose == PurposeWord::Plan) {
            if let Some(latency) = &cell.latency {
                *sums.entry((cell.size_bytes, cell.rail)).or_default() += latency.count;
            }
        }
        assert!(!sums.is_empty(), "the sweep measured latencies; {self}");
        let merged: BTreeMap<(u64, u16), u64> = report
            .histograms
            .iter()
            .map(|histogram| {
                let bucketed: u64 = histogram.buckets_le_ns.iter().map(|(_, count)| count).sum();
                assert_eq!(bucketed, histogram.count, "buckets of rail {}; {self}", histogram.rail);
                ((histogram.size_bytes, histogram.rail), histogram.count)
            })
            .collect();
        assert_eq!(merged, sums, "histograms and the sums of their cells; {self}");
        self
    }

    /// The findings that name a slow part.
    pub(crate) fn slow(&self) -> Vec<&FindingReport> {
        self.findings(FindingKind::Slow)
    }

    /// The findings of a kind.
    pub(crate) fn findings(&self, kind: FindingKind) -> Vec<&FindingReport> {
        let findings = self.report().findings.iter();
        findings.filter(|finding| finding.kind == kind).collect()
    }

    /// Planned cells with this node at an end, and planned cells without.
    pub(crate) fn cells_with(&self, node: &str) -> (Vec<&CellReport>, Vec<&CellReport>) {
        let planned = self.report().cells.iter().filter(|cell| cell.purpose == PurposeWord::Plan);
        planned.partition(|cell| cell.src == node || cell.dst == node)
    }

    /// Asserts that exactly the cells of `node` were lost as one of `words`, each with a reason, and all others pass.
    #[track_caller]
    pub(crate) fn lost_only_cells_of(&self, node: &str, words: &[CellStatus]) -> &Self {
        let (own, others) = self.cells_with(node);
        assert!(!own.is_empty() && !others.is_empty(), "{self}");
        let lost = own.iter().filter(|cell| cell.status != CellStatus::Pass);
        for cell in lost {
            assert!(
                words.contains(&cell.status) && !cell.reason.is_empty(),
                "cell {} of {node} is {}: {}; {self}",
                cell.id,
                cell.status,
                cell.reason
            );
        }
        for cell in others {
            assert_eq!(
                cell.status,
                CellStatus::Pass,
                "cell {} has nothing to do with {node} but {}; {self}",
                cell.id,
                cell.reason
            );
        }
        self
    }
}

impl std::fmt::Display for Swept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.result {
            Some(report) => write!(f, "{}\n---- report ----\n{}", self.finished, text::render(report)),
            None => write!(f, "{}", self.finished),
        }
    }
}
