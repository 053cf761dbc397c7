//! Scenarios over the real executable: agents, workers and clients are processes, as a user starts them.
//!
//! Tier 1 needs nothing and runs with `cargo test --workspace`. Tier 2 (`netns`) needs root and network namespaces and
//! is ignored by default: run `tests/netns/run.sh`.

mod support;

// Tier 2: real addresses, real interfaces, real faults.
mod netns;
