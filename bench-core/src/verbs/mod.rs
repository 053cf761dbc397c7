//! RDMA over verbs: what its completions mean.

mod status;

pub use status::{CompletionError, FaultyPart, WcStatus, describe_completion};
