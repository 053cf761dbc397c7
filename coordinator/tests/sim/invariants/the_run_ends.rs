//! After the faults are over, the run ends, and its whole result is on a majority of the electors, the one exception
//! being a run that says itself that it could not be stored.

use bench_core::record::{RunEnd, RunRecord};

use super::Report;
use crate::facts::{Fact, Facts};

pub(super) fn check(facts: &Facts, report: &mut Report) {
    let ended = facts.list.iter().rev().find_map(|(at, fact)| match fact {
        Fact::Ended { keepers, electors, .. } => Some((*at, *keepers, *electors)),
        _ => None,
    });
    let Some((at, keepers, electors)) = ended else {
        let last = facts.list.last().map_or(facts.healed, |(at, _)| *at);
        report.add(last, "the run did not end after the faults were over".to_owned());
        return;
    };
    let told = match facts.result.last() {
        Some(RunRecord::Ended(RunEnd::Aborted { reason })) => reason.contains("majority"),
        Some(_) | None => false,
    };
    if keepers <= electors / 2 && !told {
        report.add(at, format!("only {keepers} of {electors} electors hold the result"));
    }
}
