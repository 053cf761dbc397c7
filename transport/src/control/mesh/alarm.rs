//! One warning line per refusal or misbehaviour, and a count instead of lines when they come in a flood.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use super::close::canonical;

/// Where refusals and misbehaviour are reported.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    budget: Arc<Mutex<Budget>>,
}

impl Alarm {
    /// Warns that `what` came from `address`, with the `remedy`; or counts it, if too many were printed of late.
    pub(crate) fn raise(&self, address: SocketAddr, what: &str, remedy: &str) {
        let verdict = lock(&self.budget).spend(Instant::now());
        match verdict {
            Verdict::Print => warn!("{}: {what}: {remedy}", canonical(address)),
            Verdict::Count => {}
            Verdict::CountAndSumUp { at } => drop(tokio::spawn(sum_up(Arc::clone(&self.budget), at))),
        }
    }
}

/// Waits for the end of the second, then tells how many lines it did not print.
async fn sum_up(budget: Arc<Mutex<Budget>>, at: Instant) {
    tokio::time::sleep_until(at).await;
    let hidden = lock(&budget).take_hidden();
    warn!(
        "{hidden} more connections were refused within a second and are not listed: is somebody scanning this port?"
    );
}

fn lock(budget: &Mutex<Budget>) -> std::sync::MutexGuard<'_, Budget> {
    budget.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lines printed and hidden in the current second.
#[derive(Debug, Default)]
struct Budget {
    second: Option<Instant>,
    printed: u32,
    hidden: u64,
}

/// What to do with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Print,
    Count,
    /// The first that is counted: the sum is due at `at`.
    CountAndSumUp {
        at: Instant,
    },
}

impl Budget {
    fn spend(&mut self, now: Instant) -> Verdict {
        let second = match self.second {
            Some(second) if now.duration_since(second) < WINDOW => second,
            Some(_) | None => {
                self.printed = 0;
                *self.second.insert(now)
            }
        };
        if self.printed < LINES_PER_WINDOW {
            self.printed += 1;
            return Verdict::Print;
        }
        self.hidden += 1;
        match self.hidden {
            1 => Verdict::CountAndSumUp { at: second + WINDOW },
            _ => Verdict::Count,
        }
    }

    fn take_hidden(&mut self) -> u64 {
        std::mem::take(&mut self.hidden)
    }
}

/// The span that a budget of lines covers.
const WINDOW: Duration = Duration::from_secs(1);

/// Lines in it: as many as a person can follow; a thousand scans a second add one line a second.
const LINES_PER_WINDOW: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_prints_ten_lines_and_one_sum() {
        let mut budget = Budget::default();
        let start = Instant::now();
        let verdicts: Vec<Verdict> = (0..1000).map(|_| budget.spend(start)).collect();
        assert!(verdicts[..10].iter().all(|v| *v == Verdict::Print));
        assert_eq!(verdicts[10], Verdict::CountAndSumUp { at: start + WINDOW });
        assert!(verdicts[11..].iter().all(|v| *v == Verdict::Count));
        assert_eq!(budget.take_hidden(), 990);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_second_has_lines_again() {
        let mut budget = Budget::default();
        let start = Instant::now();
        assert_eq!((0..11).map(|_| budget.spend(start)).filter(|v| *v == Verdict::Print).count(), 10);
        assert_eq!(budget.spend(start + WINDOW - Duration::from_nanos(1)), Verdict::Count);
        assert_eq!(budget.spend(start + WINDOW), Verdict::Print);
    }
}
