//! Failures of a cell on the wire, with both ends named.

use std::time::Duration;

use bench_core::record::{Failure, FailureKind, Phase};
use bench_core::time::Mono;
use bench_core::units::format_duration;
use bench_core::verbs::describe_completion;

use super::ids::lane_of;
use super::link::Armed;
use crate::data::Timing;
use crate::data::verbs::sys::Wc;
use crate::data::verbs::sys::constants::WC_SUCCESS;

impl Armed {
    /// Refuses a completion that tells of a failure.
    #[inline]
    pub(super) fn check(&self, wc: &Wc, phase: impl FnOnce() -> Phase) -> Result<(), Failure> {
        if wc.status == WC_SUCCESS {
            return Ok(());
        }
        Err(self.failed(wc, phase()))
    }

    #[cold]
    fn failed(&self, wc: &Wc, phase: Phase) -> Failure {
        let told = describe_completion(wc.status, wc.vendor_err);
        let lane = lane_of(wc.wr_id);
        Failure {
            kind: told.kind,
            phase,
            detail: format!("{}: {}", self.pair_of(lane), told.text),
            remedy: told.remedy,
        }
    }

    /// The peer was silent until the deadline.
    pub(super) fn silent(&self, what: &str, timing: &Timing, last: Mono) -> Failure {
        let since: Duration = timing.deadline().since(last);
        Failure {
            kind: FailureKind::Timeout,
            phase: timing.phase(last),
            detail: format!(
                "{}: {what} did not come, {} after the last sign of life",
                self.pair_of(0),
                format_duration(since)
            ),
            remedy: Some(
                "look whether the peer's worker still runs, then at link and counters of both ports"
                    .to_owned(),
            ),
        }
    }

    /// The peer ended before the window did.
    pub(super) fn ended_early(&self, phase: Phase) -> Failure {
        Failure {
            kind: FailureKind::Crash,
            phase,
            detail: format!("{}: the peer ended before the window did", self.pair_of(0)),
            remedy: Some("look for the failure that the other end reports".to_owned()),
        }
    }

    fn pair_of(&self, lane: usize) -> String {
        let number = |info: &bench_core::verbs::VerbsInfo| {
            info.queue_pairs.get(lane).map_or_else(|| "?".to_owned(), |pair| pair.number.to_string())
        };
        format!(
            "queue pair {} of {} to {} of the peer's {}",
            number(&self.link.info),
            self.link.info.device,
            number(&self.peer),
            self.peer.device
        )
    }
}
