//! What people read before a run starts.

use super::{BudgetFit, Schedule};
use crate::ids::RailId;
use crate::plan::{Duplex, Pattern, Plan, RailMode};
use crate::units::format_duration;

impl Schedule {
    /// Rounds, cells, expected time, pattern, rails and coverage of `plan`, the plan of this schedule, in three lines.
    pub fn describe(&self, plan: &Plan) -> String {
        let rounds = count(self.rounds().into(), "round");
        let cells = count(self.cells().into(), "cell");
        let time = format_duration(self.expected_time(plan));
        format!(
            "{rounds}, {cells}, expected time {time}\npattern {}, {}\n{}",
            directions(plan),
            self.rails_in_words(),
            self.coverage_in_words(plan),
        )
    }

    fn rails_in_words(&self) -> String {
        let rails: Vec<String> = self.rails.iter().map(RailId::to_string).collect();
        match (rails.as_slice(), self.rail_mode) {
            ([one], RailMode::Serial | RailMode::Parallel) => format!("rail {one}"),
            (many, RailMode::Serial) => format!("rails {} one after the other", many.join(" ")),
            (many, RailMode::Parallel) => format!("rails {} all at once", many.join(" ")),
        }
    }

    fn coverage_in_words(&self, plan: &Plan) -> String {
        let coverage = self.coverage();
        let budget = match self.fit {
            BudgetFit::Unlimited => String::new(),
            BudgetFit::Whole { budget } => format!(", within the budget of {}", format_duration(budget)),
            BudgetFit::Sampled { budget } => {
                format!(", sampled by seed {} for the budget of {}", plan.seed, format_duration(budget))
            }
            BudgetFit::Exceeded { budget } => format!(
                ", which is the least worth measuring and exceeds the budget of {}",
                format_duration(budget)
            ),
        };
        match plan.pattern {
            Pattern::Loopback => {
                format!("coverage: no pair, a loopback proves nothing about a fabric{budget}")
            }
            Pattern::Pairs | Pattern::Shift | Pattern::AllToAll | Pattern::Incast | Pattern::Outcast => {
                format!(
                    "coverage: {} of {} ordered pairs, every node meets {} on each rail{budget}",
                    coverage.pairs_planned,
                    coverage.pairs_possible,
                    count(coverage.min_partners.into(), "partner"),
                )
            }
        }
    }
}

fn directions(plan: &Plan) -> String {
    match (plan.pattern, plan.duplex) {
        (Pattern::Pairs, Duplex::OneWay) => format!("{} one direction at a time", plan.pattern),
        (Pattern::Pairs, Duplex::Both) => format!("{} both directions at once", plan.pattern),
        (
            Pattern::Shift | Pattern::AllToAll | Pattern::Incast | Pattern::Outcast | Pattern::Loopback,
            Duplex::OneWay | Duplex::Both,
        ) => plan.pattern.to_string(),
    }
}

fn count(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}
