//! RDMA over verbs: its operations and parameters, and what its completions mean.

mod mtu;
mod operation;
mod options;
mod status;

pub use mtu::{NoPathMtu, PathMtu};
pub use operation::{Operation, Sides};
pub use options::{FlowLabels, Memory, RdmaOptions};
pub use status::{CompletionError, FaultyPart, WcStatus, describe_completion};
