//! RDMA over verbs: its operations and parameters, how two ports find each other, and what completions mean.

mod by_hand;
mod gid;
mod info;
mod mtu;
mod operation;
mod options;
mod path;
mod pkey;
mod port;
mod status;

pub use by_hand::{HandRun, perftest_command};
pub use gid::{Gid, GidFamily, GidKind, GidRow};
pub use info::{Grh, QueuePairAddress, RemoteMemory, VerbsInfo};
pub use mtu::{NoPathMtu, PathMtu};
pub use operation::{Operation, Sides};
pub use options::{FlowLabels, Memory, RdmaOptions};
pub use path::{NoPath, Path, Routing, choose_path, udp_source_port};
pub use pkey::{NoPartition, PkeyRow, choose_pkeys};
pub use port::{PortProblem, PortView, check_port};
pub use status::{CompletionError, FaultyPart, WcStatus, describe_completion};
