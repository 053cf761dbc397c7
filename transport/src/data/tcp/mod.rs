//! The TCP backend: bandwidth over n streams and ping-pong latency, bound to the rail's address.
//!
//! ```text
//!  destination: listen ──────────▶ accept + token ──▶ ack ──▶ sink or responder
//!  source:             (info) ───▶ dial + token ────▶ wait ─▶ sender or initiator
//! ```
//! The receiver reads every byte into user memory, socket buffers are the kernel's defaults, and no congestion control
//! is chosen: the figures are those of the node as it is configured. Whole-cell decisions (retry, verdict) are the
//! caller's.

mod bandwidth;

mod dial;
mod failure;
mod latency;
mod listen;
mod pace;

mod stream;

use bench_core::cell::End;
use bench_core::measure::Measurement;
use bench_core::message::{CellTask, EndpointInfo, Peer};
use bench_core::node::Capability;
use bench_core::plan::{Spread, TestCase};
use bench_core::record::{Evidence, Failure, Phase};

use self::listen::Listener;
use self::stream::{Remainders, Stream};
use super::{Backend, Endpoint, Stop, Timing, Token, out_of_order, refuse_late_start, unless_stopped};
use crate::clock;

/// Measures over TCP sockets. Works on every node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

impl Backend for Tcp {
    fn capability(&self) -> Capability {
        Capability { name: "tcp".to_owned(), absent: None }
    }

    fn prepare(&self, task: &CellTask) -> Result<Box<dyn Endpoint>, Failure> {
        let state = match task.end {
            End::Source => State::Prepared,
            End::Destination => State::Listening(Listener::bind(task.address()?, streams(&task.case))?),
        };
        Ok(Box::new(TcpEndpoint {
            task: task.clone(),
            state,
            evidence: Evidence { device: Some(task.device.clone()), ..Evidence::default() },
        }))
    }
}

/// One end of one TCP cell.
#[derive(Debug)]
struct TcpEndpoint {
    task: CellTask,
    state: State,
    evidence: Evidence,
}

/// How far an endpoint has come.
#[derive(Debug)]
enum State {
    /// A source that has not connected.
    Prepared,
    /// A destination that has not accepted.
    Listening(Listener),
    /// Every stream is up.
    Armed(Armed),
    /// It has run or failed; its sockets are closed.
    Spent,
}

/// The streams of a cell and what both ends know of it.
#[derive(Debug)]
struct Armed {
    streams: Vec<Stream>,
    token: Token,
}

impl Endpoint for TcpEndpoint {
    fn info(&self) -> Option<EndpointInfo> {
        match &self.state {
            State::Listening(listener) => {
                Some(EndpointInfo::Tcp { addr: listener.addr(), token: *listener.token() })
            }
            State::Prepared | State::Armed(_) | State::Spent => None,
        }
    }

    fn connect(&mut self, peer: &Peer, stop: &Stop) -> Result<(), Failure> {
        self.task.case = peer.paced(self.task.case, self.task.end);
        let state = std::mem::replace(&mut self.state, State::Spent);
        let armed =
            self.arm(state, peer.endpoint.as_ref(), stop).map_err(|failure| unless_stopped(failure, stop))?;
        self.evidence = evidence(&self.task, &armed.streams);
        self.state = State::Armed(armed);
        Ok(())
    }

    fn run(&mut self, timing: &Timing, stop: &Stop) -> Result<Measurement, Failure> {
        let State::Armed(armed) = std::mem::replace(&mut self.state, State::Spent) else {
            return Err(out_of_order(Phase::Armed));
        };
        refuse_late_start(timing, clock::now())?;
        let case = &self.task.case;
        let result = match (case.kind.spread(), self.task.end) {
            (Spread::Bandwidth, End::Source) => bandwidth::send(&armed, case, timing, stop),
            (Spread::Bandwidth, End::Destination) => bandwidth::receive(&armed, case, timing, stop),
            (Spread::Latency, End::Source) => latency::initiate(&armed, case, timing, stop),
            (Spread::Latency, End::Destination) => latency::respond(&armed, case, timing, stop),
        };
        result.map_err(|failure| unless_stopped(failure, stop))
    }

    fn evidence(&self) -> Evidence {
        self.evidence.clone()
    }
}

impl TcpEndpoint {
    fn arm(&self, from: State, peer: Option<&EndpointInfo>, stop: &Stop) -> Result<Armed, Failure> {
        let deadline = clock::now().after(self.task.connect_timeout);
        let armed = match (from, peer) {
            (State::Prepared, Some(EndpointInfo::Tcp { addr, token })) => {
                Armed { streams: dial::dial(&self.task, *addr, token, deadline, stop)?, token: *token }
            }
            (State::Listening(listener), None) => Armed {
                streams: listener.accept(streams(&self.task.case), deadline, stop)?,
                token: *listener.token(),
            },
            (State::Prepared | State::Listening(_) | State::Armed(_) | State::Spent, _) => {
                return Err(out_of_order(Phase::Connect));
            }
        };
        for stream in &armed.streams {
            stream
                .arm(self.task.case.wait, remainders(&self.task.case))
                .map_err(|error| failure::broken(stream, error, Phase::Connect))?;
        }
        Ok(armed)
    }
}

/// How many connections a case has: one exchange at a time needs one.
fn streams(case: &TestCase) -> u16 {
    match case.kind.spread() {
        Spread::Bandwidth => case.streams.max(1),
        Spread::Latency => 1,
    }
}

/// A held rate is kept with even spacing, so its pieces leave at once too.
fn remainders(case: &TestCase) -> Remainders {
    match (case.kind.spread(), case.rate_limit) {
        (Spread::Bandwidth, None) => Remainders::Join,
        (Spread::Bandwidth, Some(_)) | (Spread::Latency, _) => Remainders::AtOnce,
    }
}

fn evidence(task: &CellTask, streams: &[Stream]) -> Evidence {
    let mut facts = vec![("streams".to_owned(), streams.len().to_string())];
    let first = streams.first();
    facts.extend(
        first.and_then(Stream::congestion_control).map(|name| ("congestion_control".to_owned(), name)),
    );
    facts.extend(first.and_then(Stream::mss).map(|bytes| ("mss_bytes".to_owned(), bytes.to_string())));
    if let (Some(rate), End::Source) = (task.case.rate_limit, task.end) {
        facts.push(("pacing".to_owned(), rate.to_string()));
    }
    Evidence {
        device: Some(task.device.clone()),
        local: first.map(|stream| stream.local().to_string()),
        peer: first.map(|stream| stream.peer().to_string()),
        facts,
    }
}
