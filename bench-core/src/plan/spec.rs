//! The text form of a plan: what a TOML file or a set of flags says, with everything optional.
//!
//! ```toml
//! tests = ["tcp_bw", "tcp_lat"]
//! sizes = "64K:8M"            # bandwidth tests; also 65536, "64K,1M" or ["64K", "1M"]
//! latency_sizes = 64          # latency tests
//! duration = "2s"
//! pattern = "pairs"
//! rail_mode = "serial"
//! budget = "10m"
//!
//! [gates]
//! min_bandwidth = "380G"
//! population = "off"
//! ```
//!
//! `[[test]]` tables take the place of `tests` where tests differ in more than their size:
//!
//! ```toml
//! [[test]]
//! kind = "tcp_bw"
//! sizes = "1M"
//! streams = 4
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::forms;
use super::gates_spec::GatesSpec;
use super::{
    Budget, Duplex, Means, Pattern, PlanError, RailMode, RdmaSpec, Retest, Spread, TestKind, Verify, WaitMode,
};
use crate::ids::RailId;
use crate::units::{BitsPerSecond, Bytes};

/// What a text or a set of flags says about a plan. A field that says nothing is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlanSpec {
    /// The tests in order, each with the parameters below. Default: bandwidth and latency over TCP.
    pub tests: Option<Vec<TestKind>>,
    /// Message sizes of bandwidth tests. Default: that of the kind.
    #[serde(with = "forms::sizes")]
    pub sizes: Option<Vec<Bytes>>,
    /// Message sizes of latency tests. Default: that of the kind.
    #[serde(with = "forms::sizes")]
    pub latency_sizes: Option<Vec<Bytes>>,
    /// Parallel connections, or queue pairs, of a bandwidth cell, 1 to 256. Default 1.
    pub streams: Option<u16>,
    /// How threads wait for data. Default `blocking`; RDMA tests always spin.
    pub wait: Option<WaitMode>,
    /// The measured window, 50 ms to 1 h. Default 2 s.
    #[serde(with = "forms")]
    pub duration: Option<Duration>,
    /// Traffic before the window, up to 10 min. Default 200 ms.
    #[serde(with = "forms")]
    pub warmup: Option<Duration>,
    /// Whether received data is compared with what was sent. Default `off`.
    pub verify: Option<Verify>,
    /// Upper bound on the rate of a bandwidth cell, 1 Mb/s to 10 Tb/s. Default: none.
    #[serde(with = "forms")]
    pub rate_limit: Option<BitsPerSecond>,
    /// Parameters of RDMA tests.
    pub rdma: Option<RdmaSpec>,
    /// Which nodes measure with which. Default `pairs`.
    pub pattern: Option<Pattern>,
    /// One direction of a pair at a time, or both. Default `one_way`.
    pub duplex: Option<Duplex>,
    /// Rails one after the other or all at once. Default `serial`.
    pub rail_mode: Option<RailMode>,
    /// Only these rails. Default: all.
    pub rails: Option<Vec<RailId>>,
    /// Upper bound on the expected measuring time. Default `auto`.
    #[serde(with = "forms")]
    pub budget: Option<Budget>,
    /// Decides which matchings a budget keeps. Default 0.
    pub seed: Option<u64>,
    /// Whether suspects are measured again before they are named. Default `suspects`.
    pub retest: Option<Retest>,
    /// How long a node may take to arm a round, 1 s to 10 min. Default 10 s.
    #[serde(with = "forms")]
    pub prepare_timeout: Option<Duration>,
    /// Limits that cells are judged against. Default: the population gate alone.
    pub gates: Option<GatesSpec>,
    /// Devices that are taken as rails, by node, range of nodes or `*`. Default: each node chooses.
    pub rails_of: Option<BTreeMap<String, Vec<String>>>,
    /// The tests in order, each with parameters of its own. In place of `tests`.
    pub test: Option<Vec<TestSpec>>,
}

/// One `[[test]]` table. What it leaves out is taken from the plan around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestSpec {
    /// What is measured.
    pub kind: TestKind,
    /// Message sizes; the key may be written `size`.
    #[serde(alias = "size", with = "forms::sizes", default)]
    pub sizes: Option<Vec<Bytes>>,
    /// As in [`PlanSpec::streams`]; not for latency.
    pub streams: Option<u16>,
    /// As in [`PlanSpec::wait`].
    pub wait: Option<WaitMode>,
    /// As in [`PlanSpec::duration`].
    #[serde(with = "forms", default)]
    pub duration: Option<Duration>,
    /// As in [`PlanSpec::warmup`].
    #[serde(with = "forms", default)]
    pub warmup: Option<Duration>,
    /// As in [`PlanSpec::verify`].
    pub verify: Option<Verify>,
    /// As in [`PlanSpec::rate_limit`]; not for latency, not for RDMA.
    #[serde(with = "forms", default)]
    pub rate_limit: Option<BitsPerSecond>,
    /// As in [`PlanSpec::rdma`], field by field; for RDMA tests.
    pub rdma: Option<RdmaSpec>,
}

impl PlanSpec {
    /// Reads the TOML form.
    ///
    /// # Errors
    /// [`PlanError::Syntax`] if `text` is not TOML, [`PlanError::Key`] for an unknown key or a value that its key
    /// does not take; both with the line. Ranges are checked later, by [`PlanSpec::validate`].
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        toml::from_str(text).map_err(|error| locate(text, error))
    }

    /// This spec with every field that `flags` sets replaced by that of `flags`.
    ///
    /// A list of tests in `flags`, in either form, replaces both forms here. A parameter in `flags` also replaces that
    /// of every `[[test]]` table it applies to.
    #[must_use]
    pub fn overridden_by(self, flags: Self) -> Self {
        let (tests, test) = if flags.tests.is_some() || flags.test.is_some() {
            (flags.tests.clone(), flags.test.clone())
        } else {
            let tables =
                self.test.map(|tables| tables.into_iter().map(|table| table.overridden_by(&flags)).collect());
            (self.tests, tables)
        };
        Self {
            tests,
            test,
            sizes: flags.sizes.or(self.sizes),
            latency_sizes: flags.latency_sizes.or(self.latency_sizes),
            streams: flags.streams.or(self.streams),
            wait: flags.wait.or(self.wait),
            duration: flags.duration.or(self.duration),
            warmup: flags.warmup.or(self.warmup),
            verify: flags.verify.or(self.verify),
            rate_limit: flags.rate_limit.or(self.rate_limit),
            rdma: overridden(self.rdma, flags.rdma),
            pattern: flags.pattern.or(self.pattern),
            duplex: flags.duplex.or(self.duplex),
            rail_mode: flags.rail_mode.or(self.rail_mode),
            rails: flags.rails.or(self.rails),
            budget: flags.budget.or(self.budget),
            seed: flags.seed.or(self.seed),
            retest: flags.retest.or(self.retest),
            prepare_timeout: flags.prepare_timeout.or(self.prepare_timeout),
            rails_of: flags.rails_of.or(self.rails_of),
            gates: match (self.gates, flags.gates) {
                (Some(below), Some(above)) => Some(below.overridden_by(above)),
                (below, above) => above.or(below),
            },
        }
    }
}

impl TestSpec {
    /// A test of `kind` that leaves everything else to the plan around it.
    pub fn of(kind: TestKind) -> Self {
        Self {
            kind,
            sizes: None,
            streams: None,
            wait: None,
            duration: None,
            warmup: None,
            verify: None,
            rate_limit: None,
            rdma: None,
        }
    }

    fn overridden_by(self, flags: &PlanSpec) -> Self {
        let rdma = match self.kind.means() {
            Means::Tcp => self.rdma,
            Means::Rdma(_) => overridden(self.rdma, flags.rdma),
        };
        let (sizes, streams, rate_limit) = match self.kind.spread() {
            Spread::Bandwidth => (&flags.sizes, flags.streams, flags.rate_limit),
            Spread::Latency => (&flags.latency_sizes, None, None),
        };
        Self {
            kind: self.kind,
            sizes: sizes.clone().or(self.sizes),
            streams: streams.or(self.streams),
            wait: flags.wait.or(self.wait),
            duration: flags.duration.or(self.duration),
            warmup: flags.warmup.or(self.warmup),
            verify: flags.verify.or(self.verify),
            rate_limit: rate_limit.or(self.rate_limit),
            rdma,
        }
    }
}

fn overridden(below: Option<RdmaSpec>, above: Option<RdmaSpec>) -> Option<RdmaSpec> {
    match (below, above) {
        (Some(below), Some(above)) => Some(below.overridden_by(above)),
        (below, above) => above.or(below),
    }
}

/// Gives a parser's error its line and its key.
fn locate(text: &str, mut error: toml::de::Error) -> PlanError {
    let span = error.span().unwrap_or(text.len()..text.len());
    let line = 1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count();
    // Without its input the parser prints the message and then the path of keys, which it offers in no other way.
    error.set_input(None);
    let shown = error.to_string();
    let path = shown.lines().last().and_then(|last| last.strip_prefix("in `")?.strip_suffix('`'));
    // The path ends at the table of an unknown key, and the span is that key.
    let unknown = error.message().starts_with(UNKNOWN_KEY).then(|| text.get(span)).flatten();
    let key = match (path, unknown) {
        (None, None) => None,
        (Some(key), None) | (None, Some(key)) => Some(key.to_owned()),
        (Some(table), Some(key)) => Some(format!("{table}.{key}")),
    };
    let message = error.message().replacen(UNKNOWN_KEY, "unknown key", 1);
    match key {
        None => PlanError::Syntax { line, message },
        Some(key) => PlanError::Key { line, key, message },
    }
}

/// How serde's derived code begins its message about a key that no field has.
const UNKNOWN_KEY: &str = "unknown field";
