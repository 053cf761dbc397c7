//! How long to wait before the next try: exponential, with jitter, without a clock.

use std::time::Duration;

use thiserror::Error;

/// Bounds of the waits between tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffPolicy {
    first: Duration,
    longest: Duration,
}

impl BackoffPolicy {
    /// Waits of about `first`, doubled after each failure, up to `longest`.
    ///
    /// # Errors
    /// [`BackoffError`] if `first` is zero, which would spin, or `longest` is below it.
    pub fn new(first: Duration, longest: Duration) -> Result<Self, BackoffError> {
        if first.is_zero() {
            return Err(BackoffError::Zero);
        }
        if longest < first {
            return Err(BackoffError::Reversed { first, longest });
        }
        Ok(Self { first, longest })
    }

    /// The longest wait.
    pub fn longest(&self) -> Duration {
        self.longest
    }
}

impl Default for BackoffPolicy {
    fn default() -> Self {
        Self { first: FIRST_WAIT, longest: LONGEST_WAIT }
    }
}

/// A series of waits under one policy.
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: BackoffPolicy,
    next: Duration,
}

impl Backoff {
    /// A series from its beginning.
    pub fn new(policy: BackoffPolicy) -> Self {
        Self { policy, next: policy.first }
    }

    /// The next wait: between half of the step and all of it, where `random` (uniform over `u64`) says.
    ///
    /// Half is fixed so that a step is never skipped; half is random so that a thousand agents which lost one elector
    /// do not come back in one instant.
    pub fn wait(&mut self, random: u64) -> Duration {
        let step = self.next;
        self.next = step.saturating_mul(2).min(self.policy.longest);
        let half = step / 2;
        let fraction = random as f64 / u64::MAX as f64;
        half + (step - half).mul_f64(fraction)
    }

    /// Begins again: a try has succeeded.
    pub fn reset(&mut self) {
        self.next = self.policy.first;
    }
}

/// Bounds that make no policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BackoffError {
    /// The first wait is zero.
    #[error("a first wait of zero would try without pause: give at least a millisecond")]
    Zero,
    /// The longest wait is shorter than the first.
    #[error("the longest wait {longest:?} is below the first {first:?}: swap them")]
    Reversed {
        /// The first wait.
        first: Duration,
        /// The longest wait.
        longest: Duration,
    },
}

/// A restarted agent listens again within this time, so the first retry usually succeeds.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// A node that comes up late is found within this time, and 4,096 agents that miss an elector send it at most about
/// a thousand first packets a second.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(first: u64, longest: u64) -> Result<BackoffPolicy, BackoffError> {
        BackoffPolicy::new(Duration::from_millis(first), Duration::from_millis(longest))
    }

    #[test]
    fn waits_double_up_to_the_longest_and_begin_again_after_a_reset() {
        let mut backoff = Backoff::new(policy(100, 500).unwrap());
        let waits: Vec<u128> = (0..5).map(|_| backoff.wait(u64::MAX).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 500, 500]);
        backoff.reset();
        assert_eq!(backoff.wait(u64::MAX).as_millis(), 100);
    }

    #[test]
    fn the_random_half_moves_a_wait_between_half_a_step_and_a_whole_one() {
        let wait = |random| Backoff::new(policy(100, 500).unwrap()).wait(random).as_millis();
        assert_eq!(wait(0), 50);
        assert_eq!(wait(u64::MAX / 2), 75);
        assert_eq!(wait(u64::MAX), 100);
    }

    #[test]
    fn bounds_that_would_spin_or_shrink_are_refused() {
        assert_eq!(policy(0, 500), Err(BackoffError::Zero));
        assert!(matches!(policy(200, 100), Err(BackoffError::Reversed { .. })));
        assert!(policy(100, 100).is_ok());
    }

    #[test]
    fn an_endless_series_does_not_overflow() {
        let mut backoff = Backoff::new(BackoffPolicy::new(Duration::MAX, Duration::MAX).unwrap());
        for _ in 0..3 {
            assert!(backoff.wait(0) >= Duration::MAX / 2);
        }
    }
}
