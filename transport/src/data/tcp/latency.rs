//! Ping-pong latency: one exchange at a time, timed by the initiator.
//!
//! One clock reading a sample: the end of one exchange is the start of the next. The next ping leaves before the last
//! sample is recorded and its data compared, so that both happen while the ping is on its way.

use bench_core::measure::{Histogram, LatencySample, Measurement, RttShare, Window};
use bench_core::plan::{TestCase, WaitMode};
use bench_core::record::{Failure, FailureKind, Phase};
use bench_core::time::Mono;
use rustix::io::Errno;

use super::stream::{Received, Sent, Stream};
use super::{Armed, failure};
use crate::clock;
use crate::data::payload::{Checker, Payload};
use crate::data::sampler::Stage;
use crate::data::{Stop, Timing, cancelled, wait_until};

/// The initiator's end: sends pings and times the answers.
pub(super) fn initiate(
    armed: &Armed,
    case: &TestCase,
    timing: &Timing,
    stop: &Stop,
) -> Result<Measurement, Failure> {
    let line = Line::new(armed, case, timing, stop)?;
    let size = size(case);
    let payload = Payload::new(&armed.token, 0, size, case.verify);
    let mut checker = Checker::new(Payload::new(&armed.token, 0, size, case.verify), case.verify);
    let window = Window::new(timing.window_start(), timing.window);
    let mut histogram = Histogram::new();
    let mut answer = vec![0; size];
    wait_until(timing.at, stop)?;

    let mut position = 0;
    let mut began = clock::now();
    line.send(payload.block(position))?;
    loop {
        if line.receive(&mut answer)? == Message::End {
            return Err(failure::closed(line.stream, timing, clock::now()));
        }
        let ended = clock::now();
        position += size as u64;
        let go_on = ended < timing.traffic_end();
        if go_on {
            line.send(payload.block(position))?;
        }
        if window.contains(began) {
            histogram.record(ended.since(began).as_nanos() as u64 / 2);
            checker.take(&answer, Stage::Inside);
        } else {
            checker.take(&answer, Stage::Before);
        }
        if !go_on {
            break;
        }
        if stop.is_set() {
            return Err(cancelled(timing.phase(ended)));
        }
        began = ended;
    }
    line.stream.finish();
    Ok(Measurement::Latency(LatencySample {
        window,
        histogram,
        share: RttShare::Half,
        check: checker.result(),
    }))
}

/// The responder's end: sends back what comes until the initiator ends.
pub(super) fn respond(
    armed: &Armed,
    case: &TestCase,
    timing: &Timing,
    stop: &Stop,
) -> Result<Measurement, Failure> {
    let line = Line::new(armed, case, timing, stop)?;
    let window = Window::new(timing.window_start(), timing.window);
    let mut message = vec![0; size(case)];
    let mut answered = 0;
    while line.receive(&mut message)? == Message::Whole {
        line.send(&message)?;
        if window.contains(clock::now()) {
            answered += 1;
        }
        if stop.is_set() {
            return Err(cancelled(timing.phase(clock::now())));
        }
    }
    let now = clock::now();
    if now < timing.window_end() {
        return Err(failure::closed(line.stream, timing, now));
    }
    line.stream.finish();
    Ok(Measurement::Responder { answered })
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    /// A whole message.
    Whole,
    /// The peer sends no more.
    End,
}

/// The one stream of a latency cell, with the limits of every wait on it.
struct Line<'a> {
    stream: &'a Stream,
    timing: &'a Timing,
    stop: &'a Stop,
    /// How many idle calls pass between two looks at the clock.
    look_every: u32,
}

/// How long a call has waited without effect.
#[derive(Default)]
struct Idling {
    calls: u32,
    since: Option<Mono>,
}

impl<'a> Line<'a> {
    fn new(armed: &'a Armed, case: &TestCase, timing: &'a Timing, stop: &'a Stop) -> Result<Self, Failure> {
        let stream = armed.streams.first().ok_or_else(|| Failure {
            kind: FailureKind::Unsupported,
            phase: Phase::Armed,
            detail: "a latency cell without a stream".to_owned(),
            remedy: None,
        })?;
        Ok(Self {
            stream,
            timing,
            stop,
            look_every: match case.wait {
                WaitMode::Blocking => 1,
                WaitMode::Spinning => SPINS_PER_LOOK,
            },
        })
    }

    #[inline]
    fn send(&self, message: &[u8]) -> Result<(), Failure> {
        let (mut done, mut idling) = (0, Idling::default());
        while done < message.len() {
            match self.stream.send(&message[done..]) {
                Ok(Sent::Bytes(bytes)) => done += bytes,
                Ok(Sent::Idle) => self.idle(&mut idling)?,
                Err(errno) => return Err(self.broken(errno)),
            }
        }
        Ok(())
    }

    #[inline]
    fn receive(&self, message: &mut [u8]) -> Result<Message, Failure> {
        let (mut done, mut idling) = (0, Idling::default());
        while done < message.len() {
            match self.stream.receive(&mut message[done..]) {
                Ok(Received::Bytes(bytes)) => done += bytes,
                Ok(Received::Idle) => self.idle(&mut idling)?,
                Ok(Received::Closed) => return Ok(Message::End),
                Err(errno) => return Err(self.broken(errno)),
            }
        }
        Ok(Message::Whole)
    }

    /// Called whenever nothing moved: looks at stop and deadline, though not every time while spinning.
    #[inline]
    fn idle(&self, idling: &mut Idling) -> Result<(), Failure> {
        idling.calls = idling.calls.wrapping_add(1);
        if idling.calls.is_multiple_of(self.look_every) { self.look(idling) } else { Ok(()) }
    }

    #[cold]
    fn look(&self, idling: &mut Idling) -> Result<(), Failure> {
        let now = clock::now();
        let since = *idling.since.get_or_insert(now);
        if self.stop.is_set() {
            return Err(cancelled(self.timing.phase(now)));
        }
        if now >= self.timing.deadline() {
            return Err(failure::silent(self.stream, "the peer's message", self.timing, since));
        }
        Ok(())
    }

    #[cold]
    fn broken(&self, errno: Errno) -> Failure {
        failure::broken(self.stream, errno, self.timing.phase(clock::now()))
    }
}

/// The message as a length in memory; at least one byte.
fn size(case: &TestCase) -> usize {
    usize::try_from(case.size.get()).unwrap_or(usize::MAX).max(1)
}

/// Spinning calls between two looks at clock and stop: about 0.3 ms, far below the 200 ms that stop promises.
const SPINS_PER_LOOK: u32 = 1_024;
