//! When a dead worker may be replaced: at once the first time, later after a growing pause, and not at all once it
//! died too often. Pure: time comes in.

use std::collections::VecDeque;
use std::time::Duration;

use bench_core::time::Mono;

/// The recent deaths of the workers of one rail.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    deaths: VecDeque<Mono>,
}

/// Whether a new worker may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    /// At once.
    Now,
    /// At this instant, not before.
    At(Mono),
    /// Not before enough deaths are [`MEMORY`] old.
    GivenUp {
        /// When they are.
        until: Mono,
    },
}

impl Restarts {
    /// A worker died at `at`, or could not be started.
    pub(super) fn died(&mut self, at: Mono) {
        self.deaths.push_back(at);
        while self.deaths.len() > MAX_DEATHS {
            self.deaths.pop_front();
        }
    }

    /// What may be done at `now`.
    pub(super) fn next(&mut self, now: Mono) -> Restart {
        while self.deaths.front().is_some_and(|at| now.since(*at) >= MEMORY) {
            self.deaths.pop_front();
        }
        let (Some(first), Some(last)) = (self.deaths.front(), self.deaths.back()) else {
            return Restart::Now;
        };
        if self.deaths.len() >= MAX_DEATHS {
            return Restart::GivenUp { until: first.after(MEMORY) };
        }
        let doublings = u32::try_from(self.deaths.len() - 1).expect("there are at most MAX_DEATHS");
        let at = last.after(FIRST_PAUSE * 2_u32.pow(doublings));
        if at <= now { Restart::Now } else { Restart::At(at) }
    }
}

/// A rail whose workers died this often within a minute is not measured: the fifth will not do what four did not.
pub const MAX_DEATHS: usize = 5;

/// How long a death counts.
pub(super) const MEMORY: Duration = Duration::from_secs(60);

/// Pause before the first replacement, doubled with each death (at most to 0.8 s): keeps a program that fails at
/// once from being started in a loop, and is short beside a cell's window.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn the_pause_before_a_replacement_doubles_with_each_death() {
        let mut restarts = Restarts::default();
        assert_eq!(restarts.next(at(0)), Restart::Now);
        for (death, pause) in [(1_000, 100), (2_000, 200), (3_000, 400), (4_000, 800)] {
            restarts.died(at(death));
            assert_eq!(restarts.next(at(death)), Restart::At(at(death + pause)));
            assert_eq!(restarts.next(at(death + pause)), Restart::Now);
        }
    }

    #[test]
    fn five_deaths_in_a_minute_are_enough_and_a_minute_later_it_is_tried_again() {
        let mut restarts = Restarts::default();
        for death in 1..=5 {
            restarts.died(at(death * 1_000));
        }
        assert_eq!(restarts.next(at(20_000)), Restart::GivenUp { until: at(61_000) });
        assert_eq!(restarts.next(at(61_000)), Restart::Now);
        restarts.died(at(61_000));
        assert_eq!(restarts.next(at(61_900)), Restart::GivenUp { until: at(62_000) });
    }
}
