//! What one seed stands for: the mesh, the run and the faults.

use bench_core::fabric::Rng;
use bench_core::plan::{Plan, PlanSpec};
use bench_core::time::Mono;

use crate::agent::FenceLaw;
use crate::faults::{self, Fault};

/// What one seed stands for.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) nodes: usize,
    pub(crate) electors: usize,
    pub(crate) plan: Plan,
    pub(crate) slow: Option<usize>,
    pub(crate) cancel: Option<Mono>,
    pub(crate) late: Option<(usize, Mono)>,
    pub(crate) faults: Vec<(faults::When, Fault)>,
    pub(crate) healed: Mono,
    pub(crate) law: FenceLaw,
}

impl Scenario {
    /// The mesh, the run and the faults of a seed.
    pub(crate) fn of(seed: u64, law: FenceLaw) -> Self {
        let mut rng = Rng::of(&[seed, 1]);
        let mut pick = |below: u64| rng.next_u64() % below;
        let nodes = 3 + pick(5) as usize;
        let tests = ["\"tcp_bw\"", "\"tcp_bw\"", "\"tcp_bw\", \"tcp_lat\""][pick(3) as usize];
        let tests = if nodes > 4 { "\"tcp_bw\"" } else { tests };
        let pattern = ["pairs", "pairs", "shift"][pick(3) as usize];
        let retest = ["never", "suspects"][pick(2) as usize];
        let spec = format!(
            "tests = [{tests}]\npattern = \"{pattern}\"\nretest = \"{retest}\"\nduration = \"200ms\"\nwarmup = \"10ms\"\n"
        );
        let spec = PlanSpec::from_toml(&spec).expect("valid TOML");
        let at = |millis: u64| Mono::from_nanos(millis * 1_000_000);
        let slow = (pick(4) == 0).then(|| pick(nodes as u64) as usize);
        let cancel = (pick(12) == 0).then(|| at(1_000 + pick(6_000)));
        let late = (pick(6) == 0).then(|| (pick(nodes as u64) as usize, at(500 + pick(8_000))));
        Self {
            seed,
            nodes,
            electors: if nodes < 5 { 3 } else { 5 },
            plan: spec.validate().expect("a valid plan"),
            slow,
            cancel,
            late,
            faults: faults::draw(&mut rng, nodes),
            healed: at(12_000),
            law,
        }
    }
}
