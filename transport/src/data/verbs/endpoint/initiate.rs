//! The end that keeps requests under way and counts what is done: bandwidth and message rate.
//!
//! One clock reading for each look at the completion queue. A completion tells of every message of its queue pair up to
//! its own number, so counting costs the same for any moderation.

use bench_core::measure::{DataCheck, Measurement};
use bench_core::plan::Verify;
use bench_core::record::{Failure, Phase};
use bench_core::time::Mono;
use bench_core::verbs::{Operation, Sides};

use super::ids::{self, About};
use super::job::{Inbox, Job};
use super::layout::Layout;
use super::link::Armed;
use crate::clock;
use crate::data::sampler::{Counter, sample};
use crate::data::verbs::error::VerbError;
use crate::data::verbs::queue_pair::QueuePair;
use crate::data::verbs::region::Region;
use crate::data::verbs::requests::{Action, Carriage, SendList, Signal};
use crate::data::verbs::sys::Wc;
use crate::data::wait_until;

/// Keeps requests under way until the end of the tail, and returns what was done inside the window.
///
/// # Errors
/// [`Failure`]: a failed completion, a silent peer, or a stop.
pub(super) fn initiate(armed: &mut Armed, job: &Job<'_>) -> Result<Measurement, Failure> {
    let mut lanes: Vec<Lane> = (0..armed.lanes()).map(|lane| Lane::new(armed, job, lane)).collect();
    let mut inbox = Inbox::new(armed, verified(job), armed.link.layout.message());
    let mut counter = Counter::new(job.timing);
    wait_until(job.timing.at, job.stop)?;
    announce(armed, job, &mut lanes)?;
    traffic(armed, job, &mut lanes, &mut counter, &mut inbox)?;
    armed.say_goodbye(job);
    let check = match job.operation {
        Operation::Read => inbox.result(),
        Operation::Write | Operation::WriteImm | Operation::Send => DataCheck::Unchecked,
    };
    Ok(Measurement::Bandwidth(sample(&[counter], job.timing, job.case.size.get(), check)))
}

/// Only a reader has what arrives in its own memory.
fn verified(job: &Job<'_>) -> Verify {
    match job.operation {
        Operation::Read => job.case.verify,
        Operation::Write | Operation::WriteImm | Operation::Send => Verify::Off,
    }
}

/// Lets an end that compares and is not told of writes know that the first message of each queue pair is there.
fn announce(armed: &mut Armed, job: &Job<'_>, lanes: &mut [Lane]) -> Result<(), Failure> {
    match (job.operation, job.case.verify) {
        (Operation::Write, Verify::Sampled) => {}
        (Operation::Write, Verify::Off) | (Operation::WriteImm | Operation::Read | Operation::Send, _) => {
            return Ok(());
        }
    }
    for (index, lane) in lanes.iter_mut().enumerate() {
        let pair = &mut armed.link.queue_pairs[index];
        lane.post(pair, index, 1).map_err(|error| error.failure(Phase::Warmup))?;
        armed.send_word(index, Phase::Warmup)?;
    }
    Ok(())
}

fn traffic(
    armed: &mut Armed,
    job: &Job<'_>,
    lanes: &mut [Lane],
    counter: &mut Counter,
    inbox: &mut Inbox,
) -> Result<(), Failure> {
    let (size, end) = (armed.link.layout.message(), job.timing.traffic_end());
    let mut room = [Wc::default(); POLL_BATCH];
    let mut now = clock::now();
    let mut last = now;
    loop {
        if now < end {
            for (index, lane) in lanes.iter_mut().enumerate() {
                let link = &mut armed.link;
                lane.fill(&mut link.queue_pairs[index], &link.region, &link.layout, index)
                    .map_err(|error| error.failure(job.timing.phase(now)))?;
            }
        }
        let done = armed.link.cq.poll(&mut room).map_err(|error| error.failure(job.timing.phase(now)))?;
        now = clock::now();
        let mut messages = 0;
        for wc in done {
            armed.check(wc, || job.timing.phase(now))?;
            if let About::Message(number) = ids::about(wc.wr_id) {
                let index = ids::lane_of(wc.wr_id);
                messages += lanes[index].finish(number);
                inbox.sample(armed, index);
            }
        }
        if messages > 0 {
            counter.add(now, messages as usize * size);
            last = now;
        } else {
            counter.look(now);
        }
        job.go_on(now)?;
        if now >= end && (lanes.iter().all(Lane::is_idle) || is_late(job, now, last)) {
            return Ok(());
        }
        if now >= job.timing.deadline() {
            return Err(armed.silent("a completion", job.timing, last));
        }
    }
}

/// A slow rail may need longer for what is under way than anybody waits; the window is over and counted.
fn is_late(job: &Job<'_>, now: Mono, last: Mono) -> bool {
    now >= job.patience() && last >= job.timing.window_end()
}

/// The messages of one queue pair.
struct Lane {
    list: SendList,
    /// Most messages under way.
    depth: u64,
    /// Messages for one completion.
    every: u64,
    /// Messages handed over.
    posted: u64,
    /// Messages that are known to be done.
    done: u64,
    /// The last message that makes a completion.
    signaled: u64,
    /// Messages until the next one that does.
    countdown: u64,
    credits: Credits,
}

/// How many messages the peer can take.
enum Credits {
    /// Any number: nothing of the peer's is used up.
    Unlimited,
    /// As many as it has posted receives.
    Limited {
        /// Receives that it has posted, ever.
        granted: u64,
        /// The lower half of those that it posted anew, as last read.
        seen: u32,
    },
}

impl Lane {
    fn new(armed: &Armed, job: &Job<'_>, lane: usize) -> Self {
        let (layout, memory) = (&armed.link.layout, armed.peer.memory);
        let (there, size) = (layout.incoming(lane) as u64, layout.message());
        let (action, here) = match job.operation {
            Operation::Write => (Action::Write(memory, there), layout.out(lane)),
            Operation::WriteImm => (Action::WriteImm(memory, there), layout.out(lane)),
            Operation::Send => (Action::Send, layout.out(lane)),
            Operation::Read => (Action::Read(memory, layout.out(lane) as u64), layout.incoming(lane)),
        };
        let (credits, most) = match job.operation.sides() {
            Sides::One => (Credits::Unlimited, u32::MAX),
            Sides::Two => (
                Credits::Limited { granted: armed.peer.receives.into(), seen: 0 },
                armed.peer.receives.max(1),
            ),
        };
        let count = u32::from(job.options.post_list).min(most) as usize;
        let every = u64::from(job.options.completions_every(job.case.size));
        Self {
            list: SendList::new(
                &armed.link.region,
                (here, size),
                action,
                armed.carriage(size, job.operation),
                count,
            ),
            depth: job.options.depth.into(),
            every,
            posted: 0,
            done: 0,
            signaled: 0,
            countdown: every,
            credits,
        }
    }

    /// Hands over whole lists as long as they may be under way.
    #[inline]
    fn fill(
        &mut self,
        pair: &mut QueuePair,
        region: &Region,
        layout: &Layout,
        index: usize,
    ) -> Result<(), VerbError> {
        let batch = self.list.len() as u64;
        while self.posted + batch <= self.done + self.depth && self.admits(batch, region, layout, index) {
            self.post(pair, index, batch)?;
        }
        Ok(())
    }

    #[inline]
    fn admits(&mut self, batch: u64, region: &Region, layout: &Layout, index: usize) -> bool {
        match &mut self.credits {
            Credits::Unlimited => true,
            Credits::Limited { granted, seen } => {
                let told = region.load_u32(layout.credit(index));
                *granted += u64::from(told.wrapping_sub(*seen));
                *seen = told;
                self.posted + batch <= *granted
            }
        }
    }

    /// Hands over the first `count` requests of the list. The last one makes a completion where no further list would
    /// fit before one came.
    #[inline]
    fn post(&mut self, pair: &mut QueuePair, index: usize, count: u64) -> Result<(), VerbError> {
        let after = self.posted + count;
        for number in self.posted + 1..=after {
            self.countdown -= 1;
            let full = number == after && after - self.signaled + self.list.len() as u64 > self.depth;
            let signal = if self.countdown == 0 || full { Signal::Yes } else { Signal::No };
            if signal == Signal::Yes {
                self.countdown = self.every;
                self.signaled = number;
            }
            self.list.set((number - self.posted - 1) as usize, ids::message(index, number), signal);
        }
        self.posted = after;
        pair.post_send(&mut self.list, count as usize)
    }

    /// Every message up to this one is done: how many that are more than before.
    #[inline]
    fn finish(&mut self, number: u64) -> u64 {
        let more = number.saturating_sub(self.done);
        self.done += more;
        more
    }

    /// Whether no completion is to come any more.
    fn is_idle(&self) -> bool {
        self.done >= self.signaled
    }
}

impl Armed {
    /// How messages of this size leave: inside the request where the device granted it. A read cannot.
    pub(super) fn carriage(&self, size: usize, operation: Operation) -> Carriage {
        match operation {
            Operation::Read => Carriage::Fetched,
            Operation::Write | Operation::WriteImm | Operation::Send => {
                if size <= self.link.inline_bytes as usize { Carriage::Inline } else { Carriage::Fetched }
            }
        }
    }
}

/// Completions that one look takes.
const POLL_BATCH: usize = 32;
