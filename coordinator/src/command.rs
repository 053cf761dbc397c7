//! What the machine wants done.

use std::time::Duration;

use bench_core::ids::NodeIndex;
use bench_core::message::{Request, SubmitReply};

use crate::decision::Entry;
use crate::event::{CallTag, Ticket};

/// What the machine wants done. The driver executes commands in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Have this decided; the answer is [`Event::Committed`](crate::Event::Committed), or
    /// [`Event::Deposed`](crate::Event::Deposed) if it is lost.
    Propose(Entry),
    /// Ask an agent; the answer is [`Event::Answered`](crate::Event::Answered) with the same tag.
    Send {
        /// The agent.
        node: NodeIndex,
        /// Names the call.
        tag: CallTag,
        /// The question.
        request: Box<Request>,
        /// When to give up.
        deadline: Duration,
    },
    /// Answer a client.
    Reply {
        /// Its question.
        ticket: Ticket,
        /// The answer.
        reply: SubmitReply,
    },
}
