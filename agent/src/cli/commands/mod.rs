//! One file a command.

pub(super) mod agent;
pub(super) mod attach;
pub(super) mod cancel;
pub(super) mod demo;
mod expected;
pub(super) mod keygen;
mod one_shot;

pub(super) mod report;
pub(super) mod status;
pub(super) mod sweep;
pub(super) mod topo;
pub(super) mod worker;
