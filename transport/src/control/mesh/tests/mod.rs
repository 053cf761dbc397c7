//! Agents in one process over real UDP on loopback, and strangers that break the rules.

mod admission;
mod calls;
mod duplicates;
pub(crate) mod harness;
mod lines;
mod misbehaviour;
