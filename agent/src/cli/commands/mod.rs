//! One file a command.

pub(super) mod agent;
pub(super) mod attach;
pub(super) mod cancel;
pub(super) mod demo;
pub(super) mod keygen;
pub(super) mod report;
pub(super) mod status;
pub(super) mod sweep;
pub(super) mod topo;
pub(super) mod worker;
