//! What one run of an end is about, and the questions that every loop asks.

use bench_core::cell::End;
use bench_core::measure::DataCheck;
use bench_core::plan::{TestCase, Verify};
use bench_core::record::{Failure, Phase};
use bench_core::time::Mono;
use bench_core::verbs::{Operation, RdmaOptions};

use super::ids;
use super::link::Armed;
use super::role::SPARE;
use crate::clock;
use crate::data::payload::{Payload, SAMPLE_EVERY, combined, difference};
use crate::data::verbs::requests::{Action, Carriage, RecvList, SendList, Signal};
use crate::data::verbs::sys::Wc;
use crate::data::verbs::sys::constants::WC_RECV;
use crate::data::{Stop, Timing, cancelled};

/// One run of an end.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) case: &'a TestCase,
    pub(super) options: &'a RdmaOptions,
    pub(super) operation: Operation,
    pub(super) end: End,
    pub(super) timing: &'a Timing,
    pub(super) stop: &'a Stop,
}

impl Job<'_> {
    /// Fails where somebody asked to stop.
    #[inline]
    pub(super) fn go_on(&self, now: Mono) -> Result<(), Failure> {
        if self.stop.is_set() { Err(cancelled(self.timing.phase(now))) } else { Ok(()) }
    }

    /// Until when a living peer is waited for; a little before the deadline, so that the answer comes by it.
    pub(super) fn patience(&self) -> Mono {
        self.timing.deadline().before(crate::data::PEER_GRACE / 4)
    }
}

/// Whether a completion is the peer's word beside the messages: an empty send. Messages have at least one byte.
#[inline]
pub(super) fn is_word(wc: &Wc) -> bool {
    wc.opcode == WC_RECV && wc.byte_len == 0
}

impl Armed {
    /// How many queue pairs there are.
    pub(super) fn lanes(&self) -> usize {
        self.link.queue_pairs.len()
    }

    /// Puts this end's data into its memory.
    pub(super) fn fill_out(&self) {
        let layout = &self.link.layout;
        for lane in 0..self.lanes() {
            let payload = Payload::new(&self.link.info.seed, lane as u16, layout.message(), Verify::Off);
            self.link.region.write(layout.out(lane), payload.block(0));
        }
    }

    /// Posts receives for the peer's words on every queue pair.
    pub(super) fn listen_for_words(&mut self) -> Result<(), Failure> {
        for lane in 0..self.lanes() {
            let mut list = RecvList::new(&self.link.region, (0, 0), ids::receive(lane), SPARE as usize);
            let count = list.len();
            self.link.queue_pairs[lane]
                .post_recv(&mut list, count)
                .map_err(|error| error.failure(Phase::Connect))?;
        }
        Ok(())
    }

    /// Sends an empty message on a queue pair: all before it has arrived when it does.
    pub(super) fn send_word(&mut self, lane: usize, phase: Phase) -> Result<(), Failure> {
        let mut list = SendList::new(&self.link.region, (0, 0), Action::Send, Carriage::Fetched, 1);
        list.set(0, ids::control(lane), Signal::Yes);
        self.link.queue_pairs[lane].post_send(&mut list, 1).map_err(|error| error.failure(phase))
    }

    /// Tells the peer that no more comes, and waits until its device has that word. The measurement is complete by
    /// now: a peer that is gone costs nothing.
    pub(super) fn say_goodbye(&mut self, job: &Job<'_>) {
        if let Err(failure) = self.send_word(0, Phase::Measure) {
            tracing::debug!("the last word was not sent: {}", failure.detail);
            return;
        }
        let mut room = [Wc::default(); 8];
        while clock::now() < job.patience() && !job.stop.is_set() {
            match self.link.cq.poll(&mut room) {
                Ok(done) => {
                    let told =
                        done.iter().any(|wc| ids::about(wc.wr_id) == ids::About::Control || wc.status != 0);
                    if told {
                        return;
                    }
                }
                Err(error) => {
                    tracing::debug!("{error}");
                    return;
                }
            }
        }
    }
}

/// Compares what lies in an end's memory with what its peer sends, if it is asked to.
pub(super) struct Inbox {
    expected: Vec<Vec<u8>>,
    got: Vec<u8>,
    arrived: u64,
    compared: u64,
    different: Option<DataCheck>,
    asked: Verify,
}

impl Inbox {
    /// An inbox for messages whose first `length` bytes are compared.
    pub(super) fn new(armed: &Armed, verify: Verify, length: usize) -> Self {
        let message = armed.link.layout.message();
        let expected = match verify {
            Verify::Off => Vec::new(),
            Verify::Sampled => (0..armed.lanes())
                .map(|lane| {
                    let payload = Payload::new(&armed.peer.seed, lane as u16, message, Verify::Off);
                    payload.block(0)[..length.min(message)].to_vec()
                })
                .collect(),
        };
        let got = expected.first().map_or_else(Vec::new, |first| vec![0; first.len()]);
        Self { expected, got, arrived: 0, compared: 0, different: None, asked: verify }
    }

    /// Takes note of an arrival: every one of [`SAMPLE_EVERY`] is compared.
    #[inline]
    pub(super) fn sample(&mut self, armed: &Armed, lane: usize) {
        if !self.expected.is_empty() {
            self.arrived += 1;
            if self.arrived.is_multiple_of(SAMPLE_EVERY) {
                self.look(armed, lane);
            }
        }
    }

    /// Compares what lies there now.
    pub(super) fn look(&mut self, armed: &Armed, lane: usize) {
        let (Some(expected), None) = (self.expected.get(lane), self.different) else {
            return;
        };
        armed.link.region.read(armed.link.layout.incoming(lane), &mut self.got);
        self.different = difference(expected, &self.got, 0);
        self.compared += expected.len() as u64;
    }

    /// What came of it.
    pub(super) fn result(&self) -> DataCheck {
        match (self.asked, self.different, self.compared) {
            (Verify::Off, ..) | (Verify::Sampled, None, 0) => DataCheck::Unchecked,
            (Verify::Sampled, different, bytes) => {
                combined(different.into_iter().chain([DataCheck::Equal { bytes }]))
            }
        }
    }
}
