//! Everything that travels between processes: hello, requests, responses, and the worker's pipe.
//!
//! The encoding is postcard, which is not self-describing; no version of a message needs to be read by another
//! build, because hello refuses another build before the first message.

mod attend;
mod command;
mod hello;
mod request;
mod worker;

pub use attend::{Attend, AttendReply, Attending, Company, Outcome};
pub use command::{CommandView, Standing};
pub use hello::{Hello, HelloReply, Refusal, Role};
pub use request::{
    CellEndpoint, HandshakeReply, MemberStatus, Prepare, PrepareReply, Prepared, Request, Response, RoundKey,
    RunStatus, Start, StatusReply, SubmitReply, WatchReply,
};
pub use worker::{CellTask, EndpointInfo, FromWorker, Peer, TaskId, ToWorker};
