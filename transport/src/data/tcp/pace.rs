//! Keeps a stream at a rate.
//!
//! The source sends small pieces on a schedule. The kernel's own pacing (SO_MAX_PACING_RATE) would need a socket option
//! that no safe interface offers; a schedule in the sender works with every kernel and every congestion control, and is
//! what iperf3's `-b` does.

use std::thread;
use std::time::Duration;

use bench_core::plan::WaitMode;
use bench_core::time::Mono;
use bench_core::units::BitsPerSecond;

use super::stream::IDLE;

/// When the next piece of one stream is due, and how long it may be.
#[derive(Debug)]
pub(super) struct Pacer {
    nanos_per_byte: f64,
    piece: usize,
    /// When the next piece is due, nanoseconds on the node's clock.
    due_ns: f64,
    wait: WaitMode,
}

/// Whether a stream may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It may.
    Now,
    /// Not yet; look at stop and deadline, then ask again.
    Later,
}

impl Pacer {
    /// A schedule for one stream that begins at `at`.
    pub(super) fn new(rate: BitsPerSecond, at: Mono, wait: WaitMode) -> Self {
        let bytes_per_second = rate.0 / 8.0;
        Self {
            nanos_per_byte: 1e9 / bytes_per_second,
            piece: ((bytes_per_second * PIECE.as_secs_f64()) as usize).max(SMALLEST_PIECE),
            due_ns: at.as_nanos() as f64,
            wait,
        }
    }

    /// The longest piece to send in one turn.
    pub(super) fn piece(&self) -> usize {
        self.piece
    }

    /// Waits for the next turn, at most [`IDLE`].
    pub(super) fn turn(&self, now: Mono) -> Turn {
        let early_ns = self.due_ns - now.as_nanos() as f64;
        if early_ns <= 0.0 {
            return Turn::Now;
        }
        match self.wait {
            WaitMode::Spinning => std::hint::spin_loop(),
            WaitMode::Blocking => thread::sleep(Duration::from_nanos(early_ns as u64).min(IDLE)),
        }
        Turn::Later
    }

    /// Moves the schedule on by what was sent. A sender that fell behind catches up, but not by more than [`CATCH_UP`].
    pub(super) fn sent(&mut self, bytes: usize, now: Mono) {
        let earliest = now.as_nanos() as f64 - CATCH_UP.as_nanos() as f64;
        self.due_ns = self.due_ns.max(earliest) + bytes as f64 * self.nanos_per_byte;
    }
}

/// How much traffic goes out at once: 1 ms, as iperf3's default pacing timer, well below the 10 ms of a mark.
const PIECE: Duration = Duration::from_millis(1);
/// Bytes below which a piece costs more in calls than it smooths: about one segment on Ethernet.
const SMALLEST_PIECE: usize = 1_448;
/// How far behind a sender may be and still catch up: a scheduling delay of a busy node. Above it a stall of the network
/// would be followed by a burst at line rate.
const CATCH_UP: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Mono = Mono::from_nanos(1_000_000_000);

    fn pacer() -> Pacer {
        Pacer::new(BitsPerSecond(1e9), AT, WaitMode::Spinning)
    }

    fn after(millis: u64) -> Mono {
        AT.after(Duration::from_millis(millis))
    }

    #[test]
    fn a_second_of_turns_sends_a_second_of_the_rate() {
        let (mut pacer, mut bytes) = (pacer(), 0);
        for millis in 0..1_000 {
            while pacer.turn(after(millis)) == Turn::Now {
                bytes += pacer.piece();
                pacer.sent(pacer.piece(), after(millis));
            }
        }
        assert_eq!((pacer.piece(), bytes), (125_000, 125_000_000));
    }

    #[test]
    fn a_sender_that_was_held_up_does_not_send_all_of_it_at_once() {
        let (mut pacer, mut pieces) = (pacer(), 0);
        while pacer.turn(after(500)) == Turn::Now {
            pieces += 1;
            pacer.sent(pacer.piece(), after(500));
        }
        assert!(pieces <= 21, "{pieces} pieces of 1 ms");
    }

    #[test]
    fn nothing_goes_out_before_the_start() {
        assert_eq!(pacer().turn(AT.before(Duration::from_nanos(1_000))), Turn::Later);
    }
}
