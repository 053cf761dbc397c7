//! Plan file and flags to one validated plan. Flags override the file.

use std::fs;

use anyhow::{Context as _, anyhow};
use bench_core::ids::RailId;
use bench_core::plan::{
    Budget, Duplex, GatesSpec, Pattern, Plan, PlanSpec, RailMode, Retest, TestKind, Verify, WaitMode,
    parse_sizes,
};
use bench_core::units::Bytes;

use super::args::{PatternArg, PlanArgs, RailModeArg};
use super::exit::ExitError;

/// The plan of a file and flags over `defaults`.
///
/// # Errors
/// Exit code 2 with the file's line or the flag's name.
pub(crate) fn plan_of(args: &PlanArgs, defaults: PlanSpec) -> Result<Plan, ExitError> {
    let file = match &args.plan {
        None => PlanSpec::default(),
        Some(path) => {
            let text = fs::read_to_string(path)
                .with_context(|| format!("cannot read the plan {}", path.display()))
                .map_err(ExitError::usage)?;
            PlanSpec::from_toml(&text)
                .with_context(|| format!("the plan {} is not valid", path.display()))
                .map_err(ExitError::usage)?
        }
    };
    let flags = flags_of(args)?;
    defaults.overridden_by(file).overridden_by(flags).validate().map_err(ExitError::usage)
}

fn flags_of(args: &PlanArgs) -> Result<PlanSpec, ExitError> {
    let tests = args.test.iter().map(|name| kind_of(name)).collect::<Result<Vec<_>, _>>()?;
    let rails = args.only_rails.iter().map(|name| rail_of(name)).collect::<Result<Vec<_>, _>>()?;
    let budget = args.budget.as_deref().map(str::parse::<Budget>).transpose().map_err(ExitError::usage)?;
    Ok(PlanSpec {
        tests: (!tests.is_empty()).then_some(tests),
        sizes: sizes_of("--size", args.size.as_deref())?,
        latency_sizes: sizes_of("--latency-size", args.latency_size.as_deref())?,
        streams: args.qp,
        wait: args.spin.then_some(WaitMode::Spinning),
        duration: args.duration,
        warmup: args.warmup,
        verify: args.verify.then_some(Verify::Sampled),
        rate_limit: args.rate_limit,
        pattern: args.pattern.map(pattern_of),
        duplex: args.bidirectional.then_some(Duplex::Both),
        rail_mode: args.rail_mode.map(rail_mode_of),
        rails: (!rails.is_empty()).then_some(rails),
        budget,
        seed: args.seed,
        retest: args.no_retest.then_some(Retest::Never),
        prepare_timeout: None,
        rails_of: None,
        gates: gates_of(args),
        test: None,
        rdma: args.rdma.spec(),
    })
}

fn gates_of(args: &PlanArgs) -> Option<GatesSpec> {
    let gates = GatesSpec {
        min_bandwidth: args.limit_bw,
        max_latency: args.limit_lat,
        min_line_rate_share: args.limit_line_rate,
        ..GatesSpec::default()
    };
    (gates != GatesSpec::default()).then_some(gates)
}

fn kind_of(name: &str) -> Result<TestKind, ExitError> {
    TestKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let known: Vec<&str> = TestKind::ALL.iter().map(|kind| kind.name()).collect();
        ExitError::usage(anyhow!("--test: there is no test {name:?}; the tests are {}", known.join(", ")))
    })
}

fn rail_of(name: &str) -> Result<RailId, ExitError> {
    let number = name.trim_start_matches('r').parse();
    number
        .map(RailId)
        .map_err(|_| ExitError::usage(anyhow!("--only-rails: {name:?} is no rail such as 0 or r0")))
}

fn sizes_of(flag: &'static str, text: Option<&str>) -> Result<Option<Vec<Bytes>>, ExitError> {
    text.map(parse_sizes).transpose().context(flag).map_err(ExitError::usage)
}

fn pattern_of(arg: PatternArg) -> Pattern {
    match arg {
        PatternArg::Pairs => Pattern::Pairs,
        PatternArg::Shift => Pattern::Shift,
        PatternArg::AllToAll => Pattern::AllToAll,
        PatternArg::Incast => Pattern::Incast,
        PatternArg::Outcast => Pattern::Outcast,
        PatternArg::Loopback => Pattern::Loopback,
    }
}

fn rail_mode_of(arg: RailModeArg) -> RailMode {
    match arg {
        RailModeArg::Serial => RailMode::Serial,
        RailModeArg::Parallel => RailMode::Parallel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    use crate::cli::args::{Cli, Command};

    fn plan(flags: &[&str]) -> Result<Plan, ExitError> {
        let cli = Cli::try_parse_from(["railmesh", "sweep"].iter().chain(flags)).expect("flags that parse");
        match cli.command {
            Command::Sweep(sweep) => plan_of(&sweep.plan, PlanSpec::default()),
            other => panic!("not a sweep: {other:?}"),
        }
    }

    #[test]
    fn perftests_letters_mean_the_same() {
        let plan = plan(&["--test", "tcp_bw", "-s", "64K:256K", "-D", "3", "-q", "4", "-b"]).expect("a plan");
        assert_eq!(plan.cases.iter().map(|c| c.size.get()).collect::<Vec<_>>(), [65_536, 131_072, 262_144]);
        assert_eq!(
            (plan.cases[0].window.as_secs(), plan.cases[0].streams, plan.duplex),
            (3, 4, Duplex::Both)
        );
    }

    #[test]
    fn an_unknown_test_is_named_with_the_known_ones() {
        let text = plan(&["--test", "ib_foo"]).expect_err("no such test").to_string();
        assert!(text.contains("ib_foo") && text.contains("tcp_bw"), "{text}");
    }

    #[test]
    fn flags_override_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("plan.toml");
        fs::write(&file, "tests = [\"tcp_lat\"]\nduration = \"5s\"\n").expect("written");
        let plan = plan(&[file.to_str().expect("utf-8"), "-D", "1s"]).expect("a plan");
        assert_eq!((plan.cases[0].kind, plan.cases[0].window.as_secs()), (TestKind::TcpLat, 1));
    }
}
