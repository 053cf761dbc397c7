//! The end that lends its memory: nothing tells it of the writes and reads, only of the peer's words.

use std::thread;
use std::time::Duration;

use bench_core::measure::Measurement;
use bench_core::plan::{Spread, Verify};
use bench_core::record::Failure;
use bench_core::time::Mono;
use bench_core::verbs::Operation;

use super::ids::{self, About};
use super::job::{Inbox, Job, is_word};
use super::link::Armed;
use crate::clock;
use crate::data::verbs::sys::Wc;
use crate::data::wait_until;

/// Waits for the peer's last word. A peer that dies says none: then the deadline ends the wait, and the peer's own end,
/// or its absence, tells what happened.
///
/// # Errors
/// [`Failure`]: a failed completion, or a stop.
pub(super) fn lend(armed: &mut Armed, job: &Job<'_>) -> Result<Measurement, Failure> {
    let announced = announced(armed, job);
    let mut inbox = Inbox::new(armed, compared(job), armed.link.layout.message());
    let mut room = [Wc::default(); 8];
    let mut words = 0;
    wait_until(job.timing.at, job.stop)?;
    let mut next_look = job.timing.at;
    loop {
        let now = clock::now();
        let done = armed.link.cq.poll(&mut room).map_err(|error| error.failure(job.timing.phase(now)))?;
        for wc in done {
            armed.check(wc, || job.timing.phase(now))?;
            if ids::about(wc.wr_id) == About::Receive && is_word(wc) {
                words += 1;
            }
        }
        let over = words > announced;
        if words >= announced && (over || now >= next_look) {
            look(&mut inbox, armed);
            next_look = now.after(LOOK_EVERY);
        }
        if over || now >= job.patience() {
            break;
        }
        job.go_on(now)?;
        thread::sleep(PAUSE.min(remaining(now, job)));
    }
    Ok(Measurement::Passive { check: inbox.result() })
}

/// Words that come before the last one: one a queue pair where the peer announces its first message.
fn announced(armed: &Armed, job: &Job<'_>) -> usize {
    match compared(job) {
        Verify::Off => 0,
        Verify::Sampled => armed.lanes(),
    }
}

/// Only what is written arrives here.
fn compared(job: &Job<'_>) -> Verify {
    match (job.operation, job.case.kind.spread()) {
        (Operation::Write, Spread::Bandwidth) => job.case.verify,
        (Operation::Write, Spread::Latency)
        | (Operation::WriteImm | Operation::Read | Operation::Send, _) => Verify::Off,
    }
}

fn look(inbox: &mut Inbox, armed: &Armed) {
    for lane in 0..armed.lanes() {
        inbox.look(armed, lane);
    }
}

fn remaining(now: Mono, job: &Job<'_>) -> Duration {
    job.timing.deadline().since(now)
}

/// Between two looks for a word.
const PAUSE: Duration = Duration::from_millis(1);
/// Between two comparisons of the memory.
const LOOK_EVERY: Duration = Duration::from_millis(16);
