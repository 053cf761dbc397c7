//! From what the user said to a plan: defaults filled in, every value within its bounds.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::bounds::{self, within};
use super::gates_spec::{GatesSpec, PopulationSpec};
use super::sizes::{SizesError, refuse_repetition};
use super::spec::{PlanSpec, TestSpec};
use super::{
    Budget, Duplex, Gates, Means, Pattern, Plan, PlanError, PopulationGate, RailMode, RailsOf, Retest,
    Spread, TestCase, TestKind, Verify, WaitMode,
};
use crate::ids::RailId;
use crate::units::{BitsPerSecond, Bytes, exact_duration};

impl PlanSpec {
    /// Fills in the defaults and checks every bound.
    ///
    /// # Errors
    /// [`PlanError`] with the key, the refused value and what would be right.
    pub fn validate(self) -> Result<Plan, PlanError> {
        let pattern = self.pattern.unwrap_or(Pattern::Pairs);
        let duplex = self.duplex.unwrap_or(Duplex::OneWay);
        if duplex == Duplex::Both && pattern != Pattern::Pairs {
            return Err(PlanError::Duplex { pattern });
        }
        let budget = self.budget.unwrap_or_default();
        if let Budget::Time(time) = budget {
            time_within("budget", time, &bounds::BUDGET)?;
        }
        let prepare_timeout = self.prepare_timeout.unwrap_or(bounds::DEFAULT_PREPARE_TIMEOUT);
        time_within("prepare_timeout", prepare_timeout, &bounds::PREPARE_TIMEOUT)?;
        Ok(Plan {
            cases: cases(&self)?,
            pattern,
            duplex,
            rail_mode: self.rail_mode.unwrap_or(RailMode::Serial),
            rails: self.rails.map(checked_rails).transpose()?,
            rails_of: RailsOf::from_spec(self.rails_of.unwrap_or_default())?,
            budget,
            seed: self.seed.unwrap_or(0),
            gates: gates(self.gates.unwrap_or_default())?,
            retest: self.retest.unwrap_or(Retest::Suspects),
            prepare_timeout,
        })
    }
}

/// The test cases in order: every test with every size of it.
fn cases(spec: &PlanSpec) -> Result<Vec<TestCase>, PlanError> {
    let mut cases = Vec::new();
    for test in tests(spec)? {
        let (template, sizes) = template(&test, spec)?;
        cases.extend(sizes.into_iter().map(|size| TestCase { size, ..template }));
        if cases.len() > bounds::MAX_CASES {
            return Err(PlanError::TooManyCases { cases: cases.len(), max: bounds::MAX_CASES });
        }
    }
    Ok(cases)
}

/// The tests in whichever form the spec has them.
fn tests(spec: &PlanSpec) -> Result<Vec<TestSpec>, PlanError> {
    match (&spec.tests, &spec.test) {
        (Some(_), Some(_)) => Err(PlanError::TwoTestLists),
        (None, None) => Ok(TestKind::DEFAULT.map(TestSpec::of).to_vec()),
        (None, Some(tables)) if tables.is_empty() => Err(PlanError::Empty { key: "test" }),
        (None, Some(tables)) => Ok(tables.clone()),
        (Some(kinds), None) if kinds.is_empty() => Err(PlanError::Empty { key: "tests" }),
        (Some(kinds), None) => match first_repeated(kinds) {
            None => Ok(kinds.iter().copied().map(TestSpec::of).collect()),
            Some(kind) => Err(PlanError::RepeatedTest { kind }),
        },
    }
}

/// A test's parameters and its sizes; the size of the template is the first of them.
fn template(test: &TestSpec, spec: &PlanSpec) -> Result<(TestCase, Vec<Bytes>), PlanError> {
    let kind = test.kind;
    let streams = match kind.spread() {
        Spread::Bandwidth => test.streams.or(spec.streams).unwrap_or(bounds::DEFAULT_STREAMS),
        Spread::Latency => {
            refuse_for("streams", kind, test.streams.is_some_and(|streams| streams != 1))?;
            1
        }
    };
    let window = test.duration.or(spec.duration).unwrap_or(bounds::DEFAULT_WINDOW);
    let warmup = test.warmup.or(spec.warmup).unwrap_or(bounds::DEFAULT_WARMUP);
    within("streams", streams, &bounds::STREAMS, u16::to_string)?;
    time_within("duration", window, &bounds::WINDOW)?;
    time_within("warmup", warmup, &bounds::WARMUP)?;
    let (wait, rdma) = match kind.means() {
        Means::Tcp => {
            refuse_for("test.rdma", kind, test.rdma.is_some())?;
            (test.wait.or(spec.wait).unwrap_or(WaitMode::Blocking), None)
        }
        Means::Rdma(_) => {
            refuse_for("test.wait", kind, test.wait == Some(WaitMode::Blocking))?;
            let options = spec.rdma.unwrap_or_default().overridden_by(test.rdma.unwrap_or_default());
            (WaitMode::Spinning, Some(options.validate()?))
        }
    };
    let sizes = sizes(test, spec)?;
    let template = TestCase {
        kind,
        size: sizes[0],
        streams,
        wait,
        window,
        warmup,
        verify: test.verify.or(spec.verify).unwrap_or(Verify::Off),
        rate_limit: rate_limit(test, spec)?,
        rdma,
    };
    Ok((template, sizes))
}

/// The upper bound on a test's rate. Nothing paces RDMA, so a bound for it is refused wherever it stands.
fn rate_limit(test: &TestSpec, spec: &PlanSpec) -> Result<Option<BitsPerSecond>, PlanError> {
    let kind = test.kind;
    let limit = match (kind.means(), kind.spread()) {
        (Means::Tcp, Spread::Bandwidth) => test.rate_limit.or(spec.rate_limit),
        (Means::Tcp, Spread::Latency) => {
            refuse_for("rate_limit", kind, test.rate_limit.is_some())?;
            None
        }
        (Means::Rdma(_), Spread::Bandwidth) => {
            refuse_for("rate_limit", kind, test.rate_limit.or(spec.rate_limit).is_some())?;
            None
        }
        (Means::Rdma(_), Spread::Latency) => {
            refuse_for("rate_limit", kind, test.rate_limit.is_some())?;
            None
        }
    };
    if let Some(rate) = limit {
        within("rate_limit", rate, &bounds::RATE_LIMIT, show_rate)?;
    }
    Ok(limit)
}

/// The sizes of a test, at least one.
fn sizes(test: &TestSpec, spec: &PlanSpec) -> Result<Vec<Bytes>, PlanError> {
    let (key, around, range) = match test.kind.spread() {
        Spread::Bandwidth => ("sizes", &spec.sizes, &bounds::BANDWIDTH_SIZE),
        Spread::Latency => ("latency_sizes", &spec.latency_sizes, &bounds::LATENCY_SIZE),
    };
    let key = if test.sizes.is_some() { "test.sizes" } else { key };
    let sizes =
        test.sizes.as_ref().or(around.as_ref()).cloned().unwrap_or_else(|| vec![test.kind.default_size()]);
    if sizes.is_empty() {
        return Err(PlanError::Empty { key });
    }
    if sizes.len() > bounds::MAX_CASES {
        let max = bounds::MAX_CASES;
        let source = SizesError::TooMany { max };
        return Err(PlanError::Sizes { key, source });
    }
    refuse_repetition(&sizes).map_err(|source| PlanError::Sizes { key, source })?;
    for size in &sizes {
        within(key, *size, range, Bytes::to_string)?;
    }
    Ok(sizes)
}

fn checked_rails(rails: Vec<RailId>) -> Result<Vec<RailId>, PlanError> {
    if rails.is_empty() {
        return Err(PlanError::Empty { key: "rails" });
    }
    match first_repeated(&rails) {
        None => Ok(rails),
        Some(rail) => Err(PlanError::RepeatedRail { rail }),
    }
}

fn gates(spec: GatesSpec) -> Result<Gates, PlanError> {
    if let Some(rate) = spec.min_bandwidth {
        within("gates.min_bandwidth", rate, &bounds::MIN_BANDWIDTH, show_rate)?;
    }
    if let Some(time) = spec.max_latency {
        time_within("gates.max_latency", time, &bounds::MAX_LATENCY)?;
    }
    if let Some(share) = spec.min_line_rate_share {
        within("gates.min_line_rate_share", share, &bounds::SHARE, f64::to_string)?;
    }
    Ok(Gates {
        min_bandwidth: spec.min_bandwidth,
        max_latency: spec.max_latency,
        min_line_rate_share: spec.min_line_rate_share,
        population: match spec.population {
            None => Some(PopulationGate::default()),
            Some(PopulationSpec::Off) => None,
            Some(PopulationSpec::On(limits)) => {
                let default = PopulationGate::default();
                Some(checked_population(PopulationGate {
                    bandwidth_floor: limits.bandwidth_floor.unwrap_or(default.bandwidth_floor),
                    latency_floor: limits.latency_floor.unwrap_or(default.latency_floor),
                    deviations: limits.deviations.unwrap_or(default.deviations),
                    min_cells: limits.min_cells.unwrap_or(default.min_cells),
                })?)
            }
        },
    })
}

fn checked_population(gate: PopulationGate) -> Result<PopulationGate, PlanError> {
    let show = f64::to_string;
    within("gates.population.bandwidth_floor", gate.bandwidth_floor, &bounds::SHARE, show)?;
    within("gates.population.latency_floor", gate.latency_floor, &bounds::LATENCY_FLOOR, show)?;
    within("gates.population.deviations", gate.deviations, &bounds::DEVIATIONS, show)?;
    within("gates.population.min_cells", gate.min_cells, &bounds::MIN_CELLS, u32::to_string)?;
    Ok(gate)
}

fn time_within(key: &'static str, time: Duration, range: &RangeInclusive<Duration>) -> Result<(), PlanError> {
    within(key, time, range, |time| exact_duration(*time))
}

fn show_rate(rate: &BitsPerSecond) -> String {
    rate.exact()
}

fn refuse_for(key: &'static str, kind: TestKind, set: bool) -> Result<(), PlanError> {
    if set { Err(PlanError::DoesNotApply { key, kind }) } else { Ok(()) }
}

fn first_repeated<T: Copy + Ord>(items: &[T]) -> Option<T> {
    let mut seen = BTreeSet::new();
    items.iter().copied().find(|item| !seen.insert(*item))
}
