//! What an end does in a cell, and what it needs for that.

use bench_core::cell::End;
use bench_core::plan::{Spread, TestCase};
use bench_core::verbs::{Operation, RdmaOptions, Sides};

/// What an end does in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Keeps requests under way and counts what is done.
    Initiator,
    /// Posts receives and counts what arrives.
    Receiver,
    /// Lends its memory.
    Passive,
    /// Sends a message, waits for the answer and times both; or times a read.
    Timer,
    /// Answers each message.
    Responder,
}

/// How much of each thing an end asks its device for, on each queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// Requests under way.
    pub(super) sends: u32,
    /// Receives posted.
    pub(super) receives: u32,
    /// Completions of these that can wait to be taken.
    pub(super) completions: u32,
    /// Messages up to this size travel inside the request, if it can be had.
    pub(super) inline_bytes: u32,
}

impl Role {
    /// The role of an end.
    ///
    /// | test | source | destination |
    /// |---|---|---|
    /// | write bandwidth | initiator | passive |
    /// | send, write with immediate bandwidth | initiator | receiver |
    /// | read bandwidth | passive | initiator |
    /// | write, send, write with immediate latency | timer | responder |
    /// | read latency | timer | passive |
    pub(super) fn of(operation: Operation, spread: Spread, end: End) -> Self {
        match (spread, operation, end) {
            (Spread::Bandwidth, Operation::Read, End::Source) => Self::Passive,
            (Spread::Bandwidth, Operation::Read, End::Destination) => Self::Initiator,
            (Spread::Bandwidth, Operation::Write | Operation::WriteImm | Operation::Send, End::Source) => {
                Self::Initiator
            }
            (
                Spread::Bandwidth,
                Operation::Write | Operation::WriteImm | Operation::Send,
                End::Destination,
            ) => match operation.sides() {
                Sides::One => Self::Passive,
                Sides::Two => Self::Receiver,
            },
            (Spread::Latency, _, End::Source) => Self::Timer,
            (Spread::Latency, Operation::Read, End::Destination) => Self::Passive,
            (Spread::Latency, Operation::Write | Operation::WriteImm | Operation::Send, End::Destination) => {
                Self::Responder
            }
        }
    }

    /// What it asks for, below the device's limit of requests a queue.
    pub(super) fn needs(self, case: &TestCase, options: &RdmaOptions, most_requests: u32) -> Needs {
        let depth = u32::from(options.depth);
        let every = u32::from(options.completions_every(case.size)).max(1);
        let (sends, receives, completions) = match self {
            Self::Initiator => (depth + SPARE, SPARE, depth.div_ceil(every) + 2 * SPARE),
            Self::Receiver => {
                let receives = (2 * depth).clamp(FEWEST_RECEIVES, most_requests.max(FEWEST_RECEIVES));
                (CREDITS + SPARE, receives, receives + CREDITS + 2 * SPARE)
            }
            Self::Passive => (SPARE, SPARE, 2 * SPARE),
            Self::Timer | Self::Responder => (PINGS, PINGS, 2 * PINGS),
        };
        let wanted = options.inline_bytes.map_or_else(|| self.default_inline(), u32::from);
        Needs { sends, receives, completions, inline_bytes: wanted }
    }

    /// perftest's: its latency tests carry up to 220 bytes inside the request. A receiver's credits are 4 bytes.
    fn default_inline(self) -> u32 {
        match self {
            Self::Timer | Self::Responder => 220,
            Self::Receiver => 4,
            Self::Initiator | Self::Passive => 0,
        }
    }
}

/// Requests beside the messages: the first one and the last one of a lane.
pub(super) const SPARE: u32 = 4;
/// Credits of a lane that can be under way.
pub(super) const CREDITS: u32 = 16;
/// Requests, and receives, of a latency lane.
pub(super) const PINGS: u32 = 64;
/// Fewest receives that a receiver posts.
const FEWEST_RECEIVES: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_of_each_test_has_its_role() {
        use Operation::{Read, Send, Write, WriteImm};
        use Role::{Initiator, Passive, Receiver, Responder, Timer};
        for (operation, spread, source, destination) in [
            (Write, Spread::Bandwidth, Initiator, Passive),
            (WriteImm, Spread::Bandwidth, Initiator, Receiver),
            (Send, Spread::Bandwidth, Initiator, Receiver),
            (Read, Spread::Bandwidth, Passive, Initiator),
            (Write, Spread::Latency, Timer, Responder),
            (WriteImm, Spread::Latency, Timer, Responder),
            (Send, Spread::Latency, Timer, Responder),
            (Read, Spread::Latency, Timer, Passive),
        ] {
            assert_eq!(Role::of(operation, spread, End::Source), source, "{operation:?} {spread:?}");
            assert_eq!(
                Role::of(operation, spread, End::Destination),
                destination,
                "{operation:?} {spread:?}"
            );
        }
    }
}
