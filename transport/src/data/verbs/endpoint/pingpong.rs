//! Latency: one message at a time, timed by its sender.
//!
//! One clock reading a sample: the end of one exchange is the start of the next. The next message leaves before the last
//! sample is recorded and its data compared, so that both happen while it is on its way.

use bench_core::cell::End;
use bench_core::measure::{Histogram, LatencySample, Measurement, RttShare, Window};
use bench_core::record::{Failure, Phase};
use bench_core::time::Mono;
use bench_core::verbs::Operation;

use super::ids::{self, About};
use super::job::{Inbox, Job, is_word};
use super::link::Armed;
use super::role::PINGS;
use crate::clock;
use crate::data::verbs::requests::{Action, RecvList, SendList, Signal};
use crate::data::verbs::sys::Wc;
use crate::data::wait_until;

/// The one lane of a latency cell.
pub(super) struct Line {
    pings: SendList,
    receives: RecvList,
    operation: Operation,
    /// Messages handed over, and done.
    posted: u64,
    done: u64,
    /// Messages that arrived and were not taken yet, and receives used up.
    arrived: u32,
    used: usize,
    /// Whether the peer said that no more comes.
    over: bool,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    /// A whole message.
    Whole,
    /// The peer sends no more.
    End,
}

/// Posts the receives of a latency cell.
///
/// # Errors
/// [`Failure`] in phase `Connect`.
pub(super) fn open(armed: &mut Armed, operation: Operation) -> Result<Line, Failure> {
    let (region, layout) = (&armed.link.region, &armed.link.layout);
    let (memory, size) = (armed.peer.memory, layout.message());
    let there = layout.incoming(0) as u64;
    let (action, here) = match operation {
        Operation::Write => (Action::Write(memory, there), layout.out(0)),
        Operation::WriteImm => (Action::WriteImm(memory, there), layout.out(0)),
        Operation::Send => (Action::Send, layout.out(0)),
        Operation::Read => (Action::Read(memory, layout.out(0) as u64), layout.incoming(0)),
    };
    let mut receives =
        RecvList::new(region, (layout.incoming(0), size), ids::receive(0), (PINGS / 4) as usize);
    let pings = SendList::new(region, (here, size), action, armed.carriage(size, operation), 1);
    for _ in 0..4 {
        armed.link.queue_pairs[0]
            .post_recv(&mut receives, (PINGS / 4) as usize)
            .map_err(|error| error.failure(Phase::Connect))?;
    }
    Ok(Line { pings, receives, operation, posted: 0, done: 0, arrived: 0, used: 0, over: false })
}

/// Times exchanges until the end of the tail.
///
/// # Errors
/// [`Failure`]: a failed completion, a silent peer, or a stop.
pub(super) fn time(armed: &mut Armed, line: &mut Line, job: &Job<'_>) -> Result<Measurement, Failure> {
    let window = Window::new(job.timing.window_start(), job.timing.window);
    let mut histogram = Histogram::new();
    let mut inbox = Inbox::new(armed, job.case.verify, compared(armed, job.operation));
    let share = match job.operation {
        Operation::Read => RttShare::Full,
        Operation::Write | Operation::WriteImm | Operation::Send => RttShare::Half,
    };
    wait_until(job.timing.at, job.stop)?;
    let mut began = clock::now();
    line.send(armed, job, began)?;
    loop {
        if line.receive(armed, job, began)? == Message::End {
            return Err(armed.ended_early(job.timing.phase(clock::now())));
        }
        let ended = clock::now();
        let go_on = ended < job.timing.traffic_end();
        // Where data is compared the next message would change it.
        inbox.sample(armed, 0);
        if go_on {
            line.send(armed, job, ended)?;
        }
        if window.contains(began) {
            let nanos = ended.since(began).as_nanos() as u64;
            histogram.record(match share {
                RttShare::Half => nanos / 2,
                RttShare::Full => nanos,
            });
        }
        if !go_on {
            break;
        }
        job.go_on(ended)?;
        began = ended;
    }
    armed.say_goodbye(job);
    Ok(Measurement::Latency(LatencySample { window, histogram, share, check: inbox.result() }))
}

/// Answers every message until the sender says that no more comes.
///
/// # Errors
/// [`Failure`]: a failed completion, a silent peer, or a stop.
pub(super) fn respond(armed: &mut Armed, line: &mut Line, job: &Job<'_>) -> Result<Measurement, Failure> {
    let window = Window::new(job.timing.window_start(), job.timing.window);
    wait_until(job.timing.at, job.stop)?;
    let (mut answered, mut now) = (0, clock::now());
    while line.receive(armed, job, now)? == Message::Whole {
        line.send(armed, job, now)?;
        now = clock::now();
        if window.contains(now) {
            answered += 1;
        }
        job.go_on(now)?;
    }
    now = clock::now();
    if now < job.timing.window_end() {
        return Err(armed.ended_early(job.timing.phase(now)));
    }
    Ok(Measurement::Responder { answered })
}

/// Bytes of a message that are data: a write carries its number in the last one.
fn compared(armed: &Armed, operation: Operation) -> usize {
    let size = armed.link.layout.message();
    match operation {
        Operation::Write => size - 1,
        Operation::WriteImm | Operation::Read | Operation::Send => size,
    }
}

impl Line {
    /// Hands the next message over.
    fn send(&mut self, armed: &mut Armed, job: &Job<'_>, now: Mono) -> Result<(), Failure> {
        self.posted += 1;
        if self.operation == Operation::Write {
            let last = armed.link.layout.out(0) + armed.link.layout.message() - 1;
            armed.link.region.store_byte(last, mark(self.posted));
        }
        let signal = match self.operation {
            Operation::Read => Signal::Yes,
            Operation::Write | Operation::WriteImm | Operation::Send => {
                if self.posted.is_multiple_of(SIGNAL_EVERY) { Signal::Yes } else { Signal::No }
            }
        };
        self.pings.set(0, ids::message(0, self.posted), signal);
        armed.link.queue_pairs[0]
            .post_send(&mut self.pings, 1)
            .map_err(|error| error.failure(job.timing.phase(now)))?;
        self.renew(armed, job, now)
    }

    /// Posts receives anew once a list of them is used up; the message that was just sent is on its way meanwhile.
    fn renew(&mut self, armed: &mut Armed, job: &Job<'_>, now: Mono) -> Result<(), Failure> {
        let count = self.receives.len();
        if self.used < count {
            return Ok(());
        }
        self.used -= count;
        armed.link.queue_pairs[0]
            .post_recv(&mut self.receives, count)
            .map_err(|error| error.failure(job.timing.phase(now)))
    }

    /// Waits for the answer, or the question; `since` is the last sign of life.
    fn receive(&mut self, armed: &Armed, job: &Job<'_>, since: Mono) -> Result<Message, Failure> {
        let expected = match self.operation {
            // The timer has sent the message that is answered; the responder has answered the one before.
            Operation::Write => mark(self.posted + u64::from(self.is_responder(job))),
            Operation::WriteImm | Operation::Read | Operation::Send => 0,
        };
        let last = armed.link.layout.incoming(0) + armed.link.layout.message() - 1;
        for spins in 1_u32.. {
            match self.operation {
                Operation::Write => {
                    if armed.link.region.load_byte(last) == expected {
                        return Ok(Message::Whole);
                    }
                    if spins.is_multiple_of(SPINS_PER_POLL) || self.posted - self.done >= MOST_UNDER_WAY {
                        self.take(armed, job, since)?;
                    }
                }
                Operation::WriteImm | Operation::Send => {
                    self.take(armed, job, since)?;
                    if self.arrived > 0 {
                        self.arrived -= 1;
                        return Ok(Message::Whole);
                    }
                }
                Operation::Read => {
                    self.take(armed, job, since)?;
                    if self.done == self.posted {
                        return Ok(Message::Whole);
                    }
                }
            }
            if self.over {
                return Ok(Message::End);
            }
            if spins.is_multiple_of(SPINS_PER_LOOK) {
                let now = clock::now();
                job.go_on(now)?;
                if now >= job.timing.deadline() {
                    return Err(armed.silent("an answer", job.timing, since));
                }
            }
        }
        Ok(Message::End)
    }

    fn is_responder(&self, job: &Job<'_>) -> bool {
        match job.end {
            End::Source => false,
            End::Destination => true,
        }
    }

    /// Takes completions.
    #[inline]
    fn take(&mut self, armed: &Armed, job: &Job<'_>, since: Mono) -> Result<(), Failure> {
        let mut room = [Wc::default(); 4];
        let phase = || job.timing.phase(since);
        let done = armed.link.cq.poll(&mut room).map_err(|error| error.failure(phase()))?;
        for wc in done {
            armed.check(wc, phase)?;
            match ids::about(wc.wr_id) {
                About::Message(number) => self.done = number,
                About::Receive if is_word(wc) => self.over = true,
                About::Receive => {
                    self.arrived += 1;
                    self.used += 1;
                }
                About::Control => {}
            }
        }
        Ok(())
    }
}

/// What the last byte of the `number`-th message is: never 0, which is what memory begins with, and never that of its
/// neighbours.
fn mark(number: u64) -> u8 {
    (number % 255) as u8 + 1
}

/// Messages for one completion.
const SIGNAL_EVERY: u64 = 16;
/// Messages under way after which completions are taken at every turn.
const MOST_UNDER_WAY: u64 = 48;
/// Looks at the memory between two looks at the completion queue, where failures and words arrive.
const SPINS_PER_POLL: u32 = 128;
/// Turns between two looks at the clock.
const SPINS_PER_LOOK: u32 = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_neighbours_differ_and_none_is_zero() {
        for number in 0..1_000 {
            assert_ne!(mark(number), 0);
            assert_ne!(mark(number), mark(number + 1));
        }
    }
}
