//! Scenarios over the real executable: agents, workers and clients are processes, as a user starts them.
//!
//! Tier 1 needs nothing and runs with `cargo test --workspace`. Tier 2 (`netns`) needs root and network namespaces and
//! is ignored by default: run `tests/netns/run.sh`.

mod support;

// The demo: a whole run and its faults.
mod demo;
// A roster of plain address records.
mod expected_addresses;
// Packets of strangers.
mod flood;
// Agents of a batch job: one run, one report, one exit code.
mod one_shot;
// Wrong key, build, roster, name.
mod refused_peers;
// Clients, runs, results and reports.
mod run_rules;

// Tier 2: real addresses, real interfaces, real faults.
mod netns;
