//! The simulated mesh: the real run machine of every elector on a virtual clock, under random faults.
//!
//! Real are the machines, the decisions, the fence, the merging of journals and the judge; modelled are the consensus
//! ([`election`]), the network ([`net`]), the agents' rounds ([`agent`]) and the client. One seed decides sizes, plan,
//! delays and faults ([`faults`]), so a seed that fails fails every time.
//!
//! A simulation has two phases. In the first, processes are killed, paused and restarted with and without their state,
//! and the network loses, delays and falls apart in one or both directions. Then everything heals, and the run must
//! end. What must hold is in [`invariants`].
//!
//! ```text
//! cargo test --release -p coordinator --test sim                                 10,000 seeds
//! RAILMESH_SIM_SEEDS=200000 cargo test --release -p coordinator --test sim       a longer campaign
//! RAILMESH_SIM_SEED=4711 cargo test -p coordinator --test sim one_seed           one seed again, with its facts
//! ```
//! The campaign can fail: with agents that obey every epoch ([`agent::FenceLaw::Broken`]) a test demands that it does.
#![expect(
    clippy::disallowed_methods,
    reason = "a longer campaign and a single seed are asked for by the environment"
)]

mod agent;
mod election;
mod facts;
mod faults;
mod invariants;
mod net;
mod scenario;
mod world;

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use agent::FenceLaw;
use facts::Violation;
use scenario::Scenario;
use world::play;

fn violations(seed: u64, law: FenceLaw) -> Vec<Violation> {
    invariants::violations(&play(Scenario::of(seed, law)))
}

/// The first seed below `seeds` with a violation, looked for on every processor.
fn first_failure(seeds: u64, law: FenceLaw) -> Option<(u64, Vec<Violation>)> {
    let next = AtomicU64::new(0);
    let search = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= seeds {
            return None;
        }
        let found = violations(seed, law);
        if !found.is_empty() {
            next.store(seeds, Ordering::Relaxed);
            return Some((seed, found));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let searches: Vec<_> = (0..threads).map(|_| scope.spawn(search)).collect();
        let found = searches.into_iter().filter_map(|s| s.join().expect("a simulation does not panic"));
        found.min_by_key(|(seed, _)| *seed)
    })
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn every_invariant_holds_in_a_campaign_of_random_faults() {
    let seeds = number("RAILMESH_SIM_SEEDS").unwrap_or(SEEDS);
    if let Some((seed, found)) = first_failure(seeds, FenceLaw::Kept) {
        panic!(
            "seed {seed} breaks {} invariants; replay it with\n  RAILMESH_SIM_SEED={seed} cargo test -p coordinator \
             --test sim one_seed\n{found:#?}",
            found.len()
        );
    }
}

#[test]
fn a_campaign_with_a_broken_fence_finds_it() {
    let (_, found) =
        first_failure(SEEDS, FenceLaw::Broken).expect("some seed makes an agent obey a stale command");
    assert!(found.iter().any(|violation| violation.invariant == "no stale command obeyed"), "{found:#?}");
}

#[test]
fn one_seed_can_be_played_again() {
    let seed = number("RAILMESH_SIM_SEED").unwrap_or(0);
    let facts = play(Scenario::of(seed, FenceLaw::Kept));
    if env::var_os("RAILMESH_SIM_SEED").is_some() {
        println!("{:#?}", Scenario::of(seed, FenceLaw::Kept));
        facts.list.iter().for_each(|(at, fact)| println!("{:>13} {fact:?}", at.as_nanos()));
        facts.result.iter().for_each(|record| println!("{record:?}"));
    }
    let again = play(Scenario::of(seed, FenceLaw::Kept));
    assert_eq!(
        format!("{:?}", facts.list),
        format!("{:?}", again.list),
        "the same seed is the same simulation"
    );
    let found = invariants::violations(&facts);
    assert!(found.is_empty(), "{found:#?}");
}

/// Seeds of a campaign: the whole in release, a taste of it where nothing is optimised.
const SEEDS: u64 = if cfg!(debug_assertions) { 300 } else { 10_000 };
