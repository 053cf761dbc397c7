//! What must hold in every simulated mesh, one property a file. Checkers report violations; they do not panic.
//!
//! | property | meaning | module |
//! |---|---|---|
//! | one coordinator an epoch | nobody else was ever told the same term | [`one_coordinator_an_epoch`] |
//! | epochs only grow | on every node, in elections and at the fence | [`epochs_only_grow`] |
//! | no stale command obeyed | an agent that obeyed an epoch obeys no lower one, whatever it lost | [`no_stale_command_obeyed`] |
//! | no start without committed mark | neither sent nor obeyed, and at most once | [`no_start_without_committed_mark`] |
//! | no result lost while one end lives | what living journals held is in the result | [`no_result_lost_while_one_end_lives`] |
//! | every cell once or with a reason | one counted attempt, or a word with its reason | [`every_cell_exactly_once_or_with_a_reason`] |
//! | the run ends | after the faults, with its result on a majority of the electors | [`the_run_ends`] |

mod epochs_only_grow;
mod every_cell_exactly_once_or_with_a_reason;
mod no_result_lost_while_one_end_lives;
mod no_stale_command_obeyed;
mod no_start_without_committed_mark;
mod one_coordinator_an_epoch;
mod the_run_ends;

use bench_core::time::Mono;

use crate::facts::{Facts, Violation};

/// Where a checker puts what it finds.
pub(crate) struct Report {
    invariant: &'static str,
    found: Vec<Violation>,
}

impl Report {
    fn add(&mut self, at: Mono, what: String) {
        self.found.push(Violation { invariant: self.invariant, at, what });
    }
}

type Checker = fn(&Facts, &mut Report);

/// Every property with its name.
const CHECKERS: [(&str, Checker); 7] = [
    ("one coordinator an epoch", one_coordinator_an_epoch::check),
    ("epochs only grow", epochs_only_grow::check),
    ("no stale command obeyed", no_stale_command_obeyed::check),
    ("no start without committed mark", no_start_without_committed_mark::check),
    ("no result lost while one end lives", no_result_lost_while_one_end_lives::check),
    ("every cell exactly once or with a reason", every_cell_exactly_once_or_with_a_reason::check),
    ("the run ends", the_run_ends::check),
];

/// Everything that did not hold.
pub(crate) fn violations(facts: &Facts) -> Vec<Violation> {
    let check = |(invariant, check): &(&'static str, Checker)| {
        let mut report = Report { invariant, found: Vec::new() };
        check(facts, &mut report);
        report.found
    };
    CHECKERS.iter().flat_map(check).collect()
}
