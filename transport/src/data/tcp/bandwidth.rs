//! Bandwidth: one thread a stream, blocks from the source to the destination until the end of the tail.
//!
//! The source says by closing its direction that no more comes; the destination reads all of it and closes its own, so
//! that both know that the other saw the end.

use std::thread;

use bench_core::measure::{DataCheck, Measurement};
use bench_core::plan::{TestCase, Verify};
use bench_core::record::{Failure, Phase};
use bench_core::time::Mono;
use bench_core::units::BitsPerSecond;
use rustix::io::Errno;

use super::pace::{Pacer, Turn};
use super::stream::{Received, Sent, Stream};
use super::{Armed, failure};
use crate::clock;
use crate::data::buffer::PageBuffer;
use crate::data::payload::{Checker, Payload, combined};
use crate::data::sampler::{Counter, sample};
use crate::data::{PEER_GRACE, Stop, Timing, cancelled, wait_until};

/// The source's end: sends, and returns what it handed to the kernel inside the window.
pub(super) fn send(
    armed: &Armed,
    case: &TestCase,
    timing: &Timing,
    stop: &Stop,
) -> Result<Measurement, Failure> {
    let counters = on_every_stream(armed, |stream| {
        let sender = Sender {
            stream,
            payload: Payload::new(&armed.token, stream.index(), block(case), case.verify),
            pacer: case.rate_limit.map(|rate| Pacer::new(share(rate, armed), timing.at, case.wait)),
            timing,
            stop,
        };
        sender.run()
    })?;
    Ok(measured(&counters, case, timing, DataCheck::Unchecked))
}

/// The destination's end: reads every byte, and returns what arrived inside the window.
pub(super) fn receive(
    armed: &Armed,
    case: &TestCase,
    timing: &Timing,
    stop: &Stop,
) -> Result<Measurement, Failure> {
    let ends = on_every_stream(armed, |stream| {
        let payload = Payload::new(&armed.token, stream.index(), block(case), case.verify);
        sink(stream, Checker::new(payload, case.verify), block(case), timing, stop)
    })?;
    let (counters, checks): (Vec<Counter>, Vec<DataCheck>) = ends.into_iter().unzip();
    let check = match case.verify {
        Verify::Off => DataCheck::Unchecked,
        Verify::Sampled => combined(checks),
    };
    Ok(measured(&counters, case, timing, check))
}

/// Runs `work` for every stream at the same time, the first on this thread. The first failure counts.
fn on_every_stream<'a, T: Send>(
    armed: &'a Armed,
    work: impl Fn(&'a Stream) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let Some((first, rest)) = armed.streams.split_first() else {
        return Ok(Vec::new());
    };
    let work = &work;
    thread::scope(|scope| {
        let others: Vec<_> = rest.iter().map(|stream| scope.spawn(move || work(stream))).collect();
        let own = work(first);
        std::iter::once(own)
            .chain(others.into_iter().map(|thread| {
                thread.join().expect("a stream's thread returns its failures and does not panic")
            }))
            .collect()
    })
}

/// One stream of a source.
struct Sender<'a> {
    stream: &'a Stream,
    payload: Payload,
    pacer: Option<Pacer>,
    timing: &'a Timing,
    stop: &'a Stop,
}

impl Sender<'_> {
    fn run(mut self) -> Result<Counter, Failure> {
        let mut counter = Counter::new(self.timing);
        wait_until(self.timing.at, self.stop)?;
        self.traffic(&mut counter)?;
        self.stream.finish();
        self.wait_for_end()?;
        Ok(counter)
    }

    fn traffic(&mut self, counter: &mut Counter) -> Result<(), Failure> {
        let end = self.timing.traffic_end();
        let longest = self.pacer.as_ref().map_or(usize::MAX, Pacer::piece);
        let (mut position, mut done) = (0_u64, 0_usize);
        let mut block = self.payload.block(position);
        let mut now = self.timing.at;
        while now < end {
            if self.stop.is_set() {
                return Err(cancelled(self.timing.phase(now)));
            }
            if let Some(pacer) = &self.pacer
                && pacer.turn(now) == Turn::Later
            {
                now = clock::now();
                counter.look(now);
                continue;
            }
            let piece = &block[done..block.len().min(done.saturating_add(longest))];
            let sent = self.stream.send(piece);
            now = clock::now();
            match sent {
                Ok(Sent::Bytes(bytes)) => {
                    counter.add(now, bytes);
                    if let Some(pacer) = &mut self.pacer {
                        pacer.sent(bytes, now);
                    }
                    done += bytes;
                    if done == block.len() {
                        position += done as u64;
                        done = 0;
                        block = self.payload.block(position);
                    }
                }
                Ok(Sent::Idle) => counter.look(now),
                Err(errno) => return Err(self.broken(errno, now)),
            }
        }
        counter.look(now);
        Ok(())
    }

    /// Waits until the destination has read all and closed its direction too.
    fn wait_for_end(&self) -> Result<(), Failure> {
        let mut unexpected = [0; 64];
        loop {
            let received = self.stream.receive(&mut unexpected);
            let now = clock::now();
            match received {
                Ok(Received::Closed) | Err(Errno::CONNRESET | Errno::PIPE) => return Ok(()),
                Ok(Received::Bytes(_) | Received::Idle) => {}
                Err(errno) => return Err(self.broken(errno, now)),
            }
            if self.stop.is_set() {
                return Err(cancelled(Phase::Measure));
            }
            if now >= self.timing.deadline() {
                let last = self.timing.traffic_end();
                return Err(failure::silent(
                    self.stream,
                    "the destination's word that it has read all",
                    self.timing,
                    last,
                ));
            }
        }
    }

    fn broken(&self, errno: Errno, now: Mono) -> Failure {
        failure::broken(self.stream, errno, self.timing.phase(now))
    }
}

/// Reads one stream of a destination to its end.
fn sink(
    stream: &Stream,
    mut checker: Checker,
    block: usize,
    timing: &Timing,
    stop: &Stop,
) -> Result<(Counter, DataCheck), Failure> {
    let mut counter = Counter::new(timing);
    let mut buffer = PageBuffer::zeroed(block);
    // Blocks are filled to their end before the next one begins, as the source wrote them.
    let mut filled = 0;
    let mut last = timing.at;
    // A slow but living source is left in time for it to learn that the traffic is over.
    let patience = timing.deadline().before(PEER_GRACE / 4);
    loop {
        let received = stream.receive(&mut buffer[filled..]);
        let now = clock::now();
        match received {
            Ok(Received::Bytes(bytes)) => {
                let stage = counter.add(now, bytes);
                checker.take(&buffer[filled..filled + bytes], stage);
                filled = if filled + bytes == block { 0 } else { filled + bytes };
                last = now;
            }
            Ok(Received::Idle) => counter.look(now),
            Ok(Received::Closed) if now < timing.window_end() => {
                return Err(failure::closed(stream, timing, now));
            }
            Err(errno) if now < timing.window_end() => {
                return Err(failure::broken(stream, errno, timing.phase(now)));
            }
            Ok(Received::Closed) | Err(_) => {
                counter.look(now);
                break;
            }
        }
        if stop.is_set() {
            return Err(cancelled(timing.phase(now)));
        }
        if now >= patience && last >= timing.window_end() {
            break;
        }
        if now >= timing.deadline() {
            return Err(failure::silent(stream, "data or its end", timing, last));
        }
    }
    stream.finish();
    Ok((counter, checker.result()))
}

fn measured(counters: &[Counter], case: &TestCase, timing: &Timing, check: DataCheck) -> Measurement {
    Measurement::Bandwidth(sample(counters, timing, case.size.get(), check))
}

/// The rate of one stream of a limited cell.
fn share(rate: BitsPerSecond, armed: &Armed) -> BitsPerSecond {
    BitsPerSecond(rate.0 / armed.streams.len().max(1) as f64)
}

/// The block as a length in memory; at least one byte.
fn block(case: &TestCase) -> usize {
    usize::try_from(case.size.get()).unwrap_or(usize::MAX).max(1)
}
