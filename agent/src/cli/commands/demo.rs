//! `railmesh demo`: a real mesh of agent processes on loopback addresses, a sweep over it, and its report.
//!
//! The agents are this file started again, with a mesh key made for the demo; nothing is simulated but the line rate,
//! which loopback does not have: the sender of each bandwidth cell is paced.

use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use bench_core::plan::{GatesSpec, PlanSpec, PopulationLimits, PopulationSpec};
use bench_core::units::BitsPerSecond;
use tracing::level_filters::LevelFilter;

use crate::cli::args::DemoArgs;
use crate::cli::exit::{Exit, ExitError};
use crate::cli::following;
use crate::cli::{logging, plan_flags};
use crate::client::Client;
use crate::demo::{DemoFault, DemoMesh, DemoSpec};
use crate::runtime;

pub(crate) fn run(args: &DemoArgs, verbose: u8) -> Result<Exit, ExitError> {
    logging::to_stderr(LevelFilter::WARN, verbose);
    let rate = rate_of(&args.rate)?;
    let defaults = PlanSpec {
        duration: Some(DEMO_WINDOW),
        warmup: Some(DEMO_WARMUP),
        rate_limit: rate,
        gates: Some(demo_gates()),
        ..PlanSpec::default()
    };
    let plan = plan_flags::plan_of(&args.plan, defaults)?;
    let spec = DemoSpec { nodes: args.nodes, rails: args.rails, faults: faults_of(args)?, rate, verbose };
    spec.check().map_err(ExitError::usage)?;
    let run = runtime::random_run_id();
    let folder = following::open_folder(&args.output, run)?;
    let began = Instant::now();
    runtime::block_on(async {
        let mesh = DemoMesh::start(&spec, &folder.logs())
            .await
            .context("the demo's agents cannot be started")
            .map_err(ExitError::not_measured)?;
        eprintln!("{}", spec.announce());
        let mut client = connect(&mesh, began).await?;
        following::submit(&client, run, plan).await?;
        let strikes = mesh.strike_later();
        let exit = following::follow_to_end(&mut client, Some(run), folder, args.output.json).await;
        strikes.abort();
        client.close().await;
        mesh.stop().await;
        exit
    })
}

/// The first agent needs a moment until it answers.
async fn connect(mesh: &DemoMesh, began: Instant) -> Result<Client, ExitError> {
    loop {
        match Client::connect(mesh.address(), Some(mesh.key())).await {
            Ok(client) => return Ok(client),
            Err(error) if began.elapsed() > START_LIMIT => return Err(following::client_error(error)),
            Err(_) => tokio::time::sleep(START_PAUSE).await,
        }
    }
}

fn rate_of(text: &str) -> Result<Option<BitsPerSecond>, ExitError> {
    match text {
        "off" => Ok(None),
        rate => rate.parse().map(Some).context("--rate").map_err(ExitError::usage),
    }
}

fn faults_of(args: &DemoArgs) -> Result<Vec<DemoFault>, ExitError> {
    args.fault
        .iter()
        .map(|text| text.parse().map_err(|error| ExitError::usage(anyhow!("--fault: {error}"))))
        .collect()
}

/// The population gate, with more room for latency: the demo's nodes share this machine's processors, so a median
/// tells who had to wait for one rather than anything of a fabric.
fn demo_gates() -> GatesSpec {
    let limits = PopulationLimits { latency_floor: Some(DEMO_LATENCY_FLOOR), ..PopulationLimits::default() };
    GatesSpec { population: Some(PopulationSpec::On(limits)), ..GatesSpec::default() }
}

/// How far above the median of its comparable cells a latency may be in a demo: 9 means ten times the median. On two
/// processors under foreign load, medians of sound cells were seen from 11 to 58 us, so five times apart; the slow rail
/// that a demo plants is found by its bandwidth.
const DEMO_LATENCY_FLOOR: f64 = 9.0;

/// The demo's windows: long enough for a steady rate at 1 Gb/s, short enough for a first look.
const DEMO_WINDOW: Duration = Duration::from_millis(500);

/// The demo's warm-up: loopback needs no more to leave slow start.
const DEMO_WARMUP: Duration = Duration::from_millis(100);

/// How long the first agent may take to answer.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Pause between two tries.
const START_PAUSE: Duration = Duration::from_millis(20);
