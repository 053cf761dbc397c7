//! The data plane: one trait for every backend, and the backends.
//!
//! ```text
//!  prepare ──▶ info ──(the mesh exchanges both ends')──▶ connect ──▶ run ──▶ drop
//! ```
//! Every call is synchronous and runs on a thread of the worker that owns the endpoint; [`Stop`] ends any of them.
//! Dropping an endpoint releases everything, in any state.

mod backends;
mod buffer;
mod payload;
mod sampler;
pub mod sim;
pub mod tcp;
mod verbs;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bench_core::measure::Measurement;
use bench_core::message::{CellTask, EndpointInfo, Peer};
use bench_core::node::Capability;
use bench_core::record::{Evidence, Failure, FailureKind, Phase};
use bench_core::time::Mono;
use bench_core::units::format_duration;

pub use backends::{Backends, backends};

use crate::clock;

/// A way to move data between two nodes.
pub trait Backend: Send + Sync {
    /// What it can measure, or why it cannot.
    fn capability(&self) -> Capability;

    /// Sets up one end: for a destination this includes the listener.
    ///
    /// # Errors
    /// [`Failure`] in phase `Prepare`, such as an address that this node does not have.
    fn prepare(&self, task: &CellTask) -> Result<Box<dyn Endpoint>, Failure>;
}

/// One end of one cell.
pub trait Endpoint: Send {
    /// Where the peer finds this end; `None` if it needs not be found.
    fn info(&self) -> Option<EndpointInfo>;

    /// Goes on to armed: a source connects every stream to `peer`, a destination accepts them all.
    ///
    /// # Errors
    /// [`Failure`] in phase `Connect`: refused, or not done within the task's `connect_timeout`.
    fn connect(&mut self, peer: &Peer, stop: &Stop) -> Result<(), Failure>;

    /// Waits for the start, runs warm-up, window and tail, and returns what was measured.
    ///
    /// # Errors
    /// [`Failure`] in phase `Armed`, `Warmup` or `Measure`. Returns by `timing.deadline()` in any case.
    fn run(&mut self, timing: &Timing, stop: &Stop) -> Result<Measurement, Failure>;

    /// What this end knows of its path; complete after `connect`.
    fn evidence(&self) -> Evidence;
}

/// When an endpoint does what, on this node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// When traffic begins.
    pub at: Mono,
    /// Traffic that is not counted.
    pub warmup: Duration,
    /// Traffic that is.
    pub window: Duration,
    /// Traffic after the window, so that nobody's window closes on an idle fabric.
    pub tail: Duration,
}

impl Timing {
    /// First instant of the window.
    pub fn window_start(&self) -> Mono {
        self.at.after(self.warmup)
    }

    /// First instant after the window.
    pub fn window_end(&self) -> Mono {
        self.window_start().after(self.window)
    }

    /// First instant after the tail.
    pub fn traffic_end(&self) -> Mono {
        self.window_end().after(self.tail)
    }

    /// When an end gives up on a silent peer.
    pub fn deadline(&self) -> Mono {
        self.traffic_end().after(PEER_GRACE)
    }
}

impl Timing {
    /// The phase of the traffic at `now`.
    fn phase(&self, now: Mono) -> Phase {
        if now < self.at {
            Phase::Armed
        } else if now < self.window_start() {
            Phase::Warmup
        } else {
            Phase::Measure
        }
    }
}

/// Asks a running endpoint to stop. Cheap to clone; once set it stays set.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks to stop. Endpoints notice within 200 ms.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Sleeps until `at`, or fails in phase `Armed` when asked to stop.
fn wait_until(at: Mono, stop: &Stop) -> Result<(), Failure> {
    loop {
        if stop.is_set() {
            return Err(cancelled(Phase::Armed));
        }
        let left = at.since(clock::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(LONGEST_SLEEP));
    }
}

/// Fails where the window has begun already: what is missing from it would look like a slow rail.
fn refuse_late_start(timing: &Timing, now: Mono) -> Result<(), Failure> {
    if now <= timing.window_start() {
        return Ok(());
    }
    Err(Failure {
        kind: FailureKind::Late,
        phase: Phase::Armed,
        detail: format!(
            "the start came {} after the window had begun",
            format_duration(now.since(timing.window_start()))
        ),
        remedy: Some("this node is overloaded or its clock offset is wrong: look at its load".to_owned()),
    })
}

/// Somebody asked to stop.
fn cancelled(phase: Phase) -> Failure {
    Failure { kind: FailureKind::Cancelled, phase, detail: "asked to stop".to_owned(), remedy: None }
}

/// The failure to report: where somebody asked to stop, the peer may have stopped first, and what that looks like here
/// is no fault.
fn unless_stopped(failure: Failure, stop: &Stop) -> Failure {
    if stop.is_set() { cancelled(failure.phase) } else { failure }
}

/// A step that the endpoint's state or the peer's kind of endpoint does not allow.
fn out_of_order(phase: Phase) -> Failure {
    Failure {
        kind: FailureKind::Unsupported,
        phase,
        detail: "this endpoint cannot take this step now, or its peer is of another backend".to_owned(),
        remedy: Some("report this: the caller and the backend disagree on the order of steps".to_owned()),
    }
}

/// 128 random bits of one attempt: admits streams, and seeds the data that is sent.
type Token = [u8; 16];

/// How long a sleep may keep a thread from looking at [`Stop`].
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// How long after the last traffic a silent peer is given up: above the retransmission timeout of a lossy TCP path
/// (Linux TCP_RTO_MIN 200 ms, doubled three times).
const PEER_GRACE: Duration = Duration::from_secs(2);
