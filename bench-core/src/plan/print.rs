//! The plan as run, as text.

use super::gates_spec::{GatesSpec, PopulationLimits, PopulationSpec};
use super::spec::{PlanSpec, TestSpec};
use super::{Plan, RdmaSpec, Spread, TestCase};
use crate::units::Bytes;

impl Plan {
    /// The TOML form with every default written out. Reading it back gives an equal plan.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.to_spec())
            .expect("a spec holds only texts, numbers and tables, which TOML can say")
    }

    fn to_spec(&self) -> PlanSpec {
        PlanSpec {
            test: Some(tables(&self.cases)),
            pattern: Some(self.pattern),
            duplex: Some(self.duplex),
            rail_mode: Some(self.rail_mode),
            rails: self.rails.clone(),
            rails_of: self.rails_of.to_spec(),
            budget: Some(self.budget),
            seed: Some(self.seed),
            retest: Some(self.retest),
            prepare_timeout: Some(self.prepare_timeout),
            gates: Some(GatesSpec {
                min_bandwidth: self.gates.min_bandwidth,
                max_latency: self.gates.max_latency,
                min_line_rate_share: self.gates.min_line_rate_share,
                population: Some(match &self.gates.population {
                    None => PopulationSpec::Off,
                    Some(gate) => PopulationSpec::On(PopulationLimits {
                        bandwidth_floor: Some(gate.bandwidth_floor),
                        latency_floor: Some(gate.latency_floor),
                        deviations: Some(gate.deviations),
                        min_cells: Some(gate.min_cells),
                    }),
                }),
            }),
            ..PlanSpec::default()
        }
    }
}

/// One table for each stretch of cases that differ in their size alone.
fn tables(cases: &[TestCase]) -> Vec<TestSpec> {
    let mut tables: Vec<TestSpec> = Vec::new();
    for case in cases {
        let mut table = table(case);
        match tables.last_mut() {
            Some(last) if extends(last, &table, case.size) => {
                last.sizes.get_or_insert_default().push(case.size);
            }
            Some(_) | None => {
                table.sizes = Some(vec![case.size]);
                tables.push(table);
            }
        }
    }
    tables
}

/// Whether `table` differs from `last` in its size alone, and in a size that `last` has not got.
fn extends(last: &TestSpec, table: &TestSpec, size: Bytes) -> bool {
    let sizes = last.sizes.clone();
    !sizes.as_ref().is_some_and(|sizes| sizes.contains(&size)) && *last == TestSpec { sizes, ..table.clone() }
}

/// The table of a case, without its size.
fn table(case: &TestCase) -> TestSpec {
    TestSpec {
        kind: case.kind,
        sizes: None,
        streams: match case.kind.spread() {
            Spread::Bandwidth => Some(case.streams),
            Spread::Latency => None,
        },
        wait: Some(case.wait),
        duration: Some(case.window),
        warmup: Some(case.warmup),
        verify: Some(case.verify),
        rate_limit: case.rate_limit,
        rdma: case.rdma.map(RdmaSpec::from),
    }
}
