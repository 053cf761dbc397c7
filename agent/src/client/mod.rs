//! The client's side: a connection to any agent, and following a run to its end.

mod follow;
mod session;

pub use follow::{FollowError, Followed, RunSink, follow};
pub use session::{Client, ClientError};
