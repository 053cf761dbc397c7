//! The end that posts receives and counts what arrives.
//!
//! It tells the sender by a write of four bytes how many receives it has posted anew: the sender never meets an end
//! without a receive, whatever the processor here does, and a "receiver not ready" is a fault and no accident.

use bench_core::measure::Measurement;
use bench_core::record::{Failure, Phase};

use super::ids::{self, About};
use super::job::{Inbox, Job, is_word};
use super::link::Armed;
use super::role::CREDITS;
use crate::clock;
use crate::data::sampler::{Counter, sample};
use crate::data::verbs::requests::{Action, Carriage, RecvList, SendList, Signal};
use crate::data::verbs::sys::Wc;
use crate::data::wait_until;

/// The receives of one queue pair.
pub(super) struct Inlet {
    list: RecvList,
    credit: SendList,
    /// Receives used up and not posted anew yet.
    used: u32,
    /// Receives posted anew, ever; its lower half is what the sender is told.
    renewed: u32,
    /// Credits under way.
    telling: u32,
}

/// Posts the receives of every queue pair.
///
/// # Errors
/// [`Failure`] in phase `Connect`.
pub(super) fn open(armed: &mut Armed) -> Result<Vec<Inlet>, Failure> {
    let receives = armed.link.info.receives;
    (0..armed.lanes())
        .map(|lane| {
            let mut inlet = Inlet::new(armed, lane, (receives / 4).max(1) as usize);
            let mut left = receives as usize;
            while left > 0 {
                let count = left.min(inlet.list.len());
                armed.link.queue_pairs[lane]
                    .post_recv(&mut inlet.list, count)
                    .map_err(|error| error.failure(Phase::Connect))?;
                left -= count;
            }
            Ok(inlet)
        })
        .collect()
}

/// Counts what arrives until the sender says that no more comes.
///
/// # Errors
/// [`Failure`]: a failed completion, a silent peer, or a stop.
pub(super) fn receive(
    armed: &mut Armed,
    inlets: &mut [Inlet],
    job: &Job<'_>,
) -> Result<Measurement, Failure> {
    let size = armed.link.layout.message();
    let mut counter = Counter::new(job.timing);
    let mut inbox = Inbox::new(armed, job.case.verify, size);
    let mut room = [Wc::default(); POLL_BATCH];
    wait_until(job.timing.at, job.stop)?;
    let mut now = clock::now();
    let mut last = now;
    loop {
        let done = armed.link.cq.poll(&mut room).map_err(|error| error.failure(job.timing.phase(now)))?;
        now = clock::now();
        let (mut messages, mut over) = (0, false);
        for wc in done {
            armed.check(wc, || job.timing.phase(now))?;
            let lane = ids::lane_of(wc.wr_id);
            match ids::about(wc.wr_id) {
                About::Receive if is_word(wc) => over = true,
                About::Receive => {
                    inlets[lane].used += 1;
                    messages += 1;
                    inbox.sample(armed, lane);
                }
                About::Control | About::Message(_) => inlets[lane].telling -= 1,
            }
        }
        if messages > 0 {
            counter.add(now, messages * size);
            last = now;
        } else {
            counter.look(now);
        }
        if over || (now >= job.patience() && last >= job.timing.window_end()) {
            break;
        }
        for (lane, inlet) in inlets.iter_mut().enumerate() {
            inlet.renew(armed, lane).map_err(|error| error.failure(job.timing.phase(now)))?;
        }
        job.go_on(now)?;
        if now >= job.timing.deadline() {
            return Err(armed.silent("data or its end", job.timing, last));
        }
    }
    if now < job.timing.window_end() {
        return Err(armed.ended_early(job.timing.phase(now)));
    }
    Ok(Measurement::Bandwidth(sample(&[counter], job.timing, job.case.size.get(), inbox.result())))
}

impl Inlet {
    fn new(armed: &Armed, lane: usize, batch: usize) -> Self {
        let (region, layout) = (&armed.link.region, &armed.link.layout);
        let place = (layout.incoming(lane), layout.message());
        let inline = armed.link.queue_pairs[lane].inline_bytes() >= 4;
        let carriage = if inline { Carriage::Inline } else { Carriage::Fetched };
        let there = Action::Write(armed.peer.memory, layout.credit(lane) as u64);
        Self {
            list: RecvList::new(region, place, ids::receive(lane), batch),
            credit: SendList::new(region, (layout.own_credit(lane), 4), there, carriage, 1),
            used: 0,
            renewed: 0,
            telling: 0,
        }
    }

    /// Posts a batch of receives anew once so many are used up, and tells the sender.
    #[inline]
    fn renew(&mut self, armed: &mut Armed, lane: usize) -> Result<(), crate::data::verbs::error::VerbError> {
        let batch = self.list.len() as u32;
        if self.used < batch || self.telling >= CREDITS {
            return Ok(());
        }
        let pair = &mut armed.link.queue_pairs[lane];
        pair.post_recv(&mut self.list, batch as usize)?;
        self.used -= batch;
        self.renewed = self.renewed.wrapping_add(batch);
        armed.link.region.write(armed.link.layout.own_credit(lane), &self.renewed.to_ne_bytes());
        self.credit.set(0, ids::control(lane), Signal::Yes);
        self.telling += 1;
        pair.post_send(&mut self.credit, 1)
    }
}

/// Completions that one look takes.
const POLL_BATCH: usize = 32;
