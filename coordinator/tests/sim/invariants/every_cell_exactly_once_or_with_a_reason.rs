//! Every planned cell of the result has one counted attempt of two ends that agree on the key, or a word with a reason;
//! no key was measured twice.

use bench_core::ids::CellId;
use bench_core::journal::Standing;
use bench_core::judge::RunView;
use bench_core::record::{Outcome, RunEnd, RunRecord};
use bench_core::schedule::Schedule;

use super::Report;
use crate::facts::Facts;

pub(super) fn check(facts: &Facts, report: &mut Report) {
    let Some((RunRecord::Ended(end), records)) = facts.result.split_last() else {
        return;
    };
    let Some(RunRecord::Started(start)) = records.iter().rev().find(|r| matches!(r, RunRecord::Started(_)))
    else {
        if *end == RunEnd::Completed {
            report.add(facts.healed, "a completed run has no start".to_owned());
        }
        return;
    };
    let Ok(schedule) = Schedule::of_run(start) else {
        return;
    };
    let Ok(view) = RunView::new(records, &schedule) else {
        report.add(facts.healed, "the result cannot be judged".to_owned());
        return;
    };
    for cell in 0..schedule.cells() {
        let merged = view.merged.cell(start.run, CellId(cell));
        let failed = merged.is_some_and(|merged| {
            let mut ends =
                merged.attempts().flat_map(|(_, ends)| ends.source.iter().chain(&ends.destination));
            ends.any(|observation| matches!(observation.outcome, Outcome::Failed(_)))
        });
        let reasoned = failed || view.losses.contains_key(&CellId(cell)) || *end != RunEnd::Completed;
        match merged.map(|merged| merged.standing()) {
            Some(Standing::Complete { .. }) => {}
            Some(Standing::Conflict { key, end }) => {
                report.add(facts.healed, format!("cell {cell} was measured twice as {key:?} at its {end:?}"));
            }
            Some(Standing::Incomplete { .. }) | None if reasoned => {}
            Some(Standing::Incomplete { .. }) | None => {
                report.add(facts.healed, format!("cell {cell} has neither a measurement nor a reason"));
            }
        }
    }
    if view.strays > 0 {
        report.add(facts.healed, format!("{} records are about cells that nobody planned", view.strays));
    }
}
