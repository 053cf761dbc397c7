//! `railmesh agent`: this node's agent, until it is stopped or its one run is over.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use bench_core::ids::NodeIndex;
use bench_core::node::RailEndpoint;
use bench_core::roster::Roster;
use tracing::level_filters::LevelFilter;
use transport::control::identity::MeshKey;

use super::expected;
use super::one_shot::Job;
use crate::build_id::build_hash;
use crate::cli::args::AgentArgs;
use crate::cli::exit::{Exit, ExitError};
use crate::cli::logging;
use crate::cli::roster::{self, RosterSource};
use crate::cpus::CpuSet;
use crate::electors::Quorum;
use crate::inventory::{Host, RailChoice, Site, read_host};
use crate::node::{Agent, AgentConfig, Deps, Emulation};
use crate::runtime;
use crate::supervise::{Placer, Places, ProcessFactory, Spawner, agent_core, locate};

pub(crate) fn run(args: AgentArgs, verbose: u8) -> Result<Exit, ExitError> {
    logging::to_stderr(LevelFilter::INFO, verbose);
    if args.die_with_parent {
        runtime::die_with_parent().map_err(ExitError::not_measured)?;
    }
    runtime::block_on(async {
        let launched = match roster::resolve(&args)? {
            RosterSource::Known(roster) => launch(&args, roster, Quorum::Majority)?,
            RosterSource::Service { service, expect } => tokio::select! {
                launched = expected::confirmed(&args, &service, expect) => launched?,
                () = runtime::interrupted() => return Ok(stopped_early(&args)),
            },
        };
        let Up { agent, job } = match launched {
            Launched::Up(up) => *up,
            Launched::Ended(exit) => return Ok(exit),
        };
        let name = agent.name().clone();
        let exit = tokio::select! {
            exit = act(&agent, job.as_ref()) => exit,
            reason = agent.refused() => Err(ExitError::usage(anyhow!("{name} cannot be part of this mesh: {reason}"))),
        };
        agent.shutdown().await;
        exit
    })
}

/// An agent that was started, or that has nothing to do any more.
pub(super) enum Launched {
    /// It runs.
    Up(Box<Up>),
    /// Its one run has ended before.
    Ended(Exit),
}

/// A running agent and its job, if it has one.
pub(super) struct Up {
    pub(super) agent: Agent,
    job: Option<Job>,
}

/// Starts the agent of a roster.
///
/// # Errors
/// Exit code 2 for what was typed and what cannot be served, 3 for what the kernel refuses.
pub(super) fn launch(args: &AgentArgs, roster: Roster, quorum: Quorum) -> Result<Launched, ExitError> {
    let (mut config, deps) = resolve(args, roster, quorum)?;
    let job = Job::of(args, &config)?;
    if let Some(exit) = job.as_ref().map(Job::ended_before).transpose()?.flatten() {
        return Ok(Launched::Ended(exit));
    }
    if let Some(job) = &job {
        job.state().clone_into(&mut config.state);
    }
    let listen = config.listen;
    let agent = Agent::start(config, deps).map_err(ExitError::usage)?;
    tracing::info!(node = %agent.name(), %listen, build = %build_hash(), "the agent is up");
    Ok(Launched::Up(Box::new(Up { agent, job })))
}

/// The exit code of an agent that is told to stop before it has a roster.
fn stopped_early(args: &AgentArgs) -> Exit {
    match args.run {
        Some(_) => Exit::NotMeasured,
        None => Exit::Pass,
    }
}

/// Plays the job, or serves until the process is told to stop.
async fn act(agent: &Agent, job: Option<&Job>) -> Result<Exit, ExitError> {
    match job {
        Some(job) => job.play(agent).await,
        None => {
            runtime::interrupted().await;
            Ok(Exit::Pass)
        }
    }
}

/// What was typed to what the agent needs.
fn resolve(args: &AgentArgs, roster: Roster, quorum: Quorum) -> Result<(AgentConfig, Deps), ExitError> {
    let key = args.key.as_deref().map(MeshKey::read).transpose().map_err(ExitError::usage)?;
    let host = read_host(Path::new("/"));
    let site = Site::read(&args.root).map_err(ExitError::not_measured)?;
    let me = roster::own_place(&roster, args.name.as_ref(), &host.hostname, &site.interfaces)?;
    let choice =
        if args.rails.is_empty() { RailChoice::Automatic } else { RailChoice::Named(args.rails.clone()) };
    let rails = site.choose(&choice).map_err(ExitError::usage)?;
    for rail in &rails {
        let gpu = rail.gpu.as_ref().map(|gpu| gpu.index);
        tracing::info!(rail = %rail.rail, place = %rail.place(), gpu, reason = %rail.reason, "rail");
    }
    let state = state_folder(args.state.as_deref(), &roster, me);
    let mut emulate = Emulation::default();
    for fault in &args.emulate {
        emulate.add(fault).map_err(ExitError::usage)?;
    }
    let (deps, notes) = deps_of(args, host, &rails, &state)?;
    let listen = roster::listen_address(args.listen, &roster, me, key.is_some());
    let config = AgentConfig {
        roster,
        me,
        boot: runtime::random_boot_id(),
        build: build_hash(),
        key,
        listen,
        dns: args.dns,
        rails,
        root: args.root.clone(),
        state,
        quorum,
        join_timeout: args.join_timeout,
        emulate,
        notes,
    };
    Ok((config, deps))
}

fn deps_of(
    args: &AgentArgs,
    host: Host,
    rails: &[RailEndpoint],
    state: &Path,
) -> Result<(Deps, Vec<String>), ExitError> {
    let places = Places::of_this_process(args.worker.clone(), Some(state.to_owned()))
        .map_err(ExitError::not_measured)?;
    let program = locate(&places).map_err(ExitError::usage)?;
    tracing::info!(worker = %program.reason(), "worker program");
    let spawner =
        Spawner::start().context("cannot start the spawning thread").map_err(ExitError::not_measured)?;
    let placer = placer(&args.root).map_err(ExitError::not_measured)?;
    let notes = placer.notes(rails);
    let factory = Arc::new(ProcessFactory { spawner, program, log: LevelFilter::WARN });
    Ok((Deps { factory, placer, host }, notes))
}

/// Pins this agent to its core; the workers go elsewhere.
fn placer(root: &Path) -> io::Result<Placer> {
    let allowed = CpuSet::of_this_thread()?;
    let agent_core = agent_core(&allowed);
    if let Some(core) = agent_core {
        CpuSet::from_iter([core]).pin_this_thread()?;
    }
    Ok(Placer { allowed, agent_core, root: root.to_owned() })
}

/// Where the state goes by default: the system's place for root, the user's for others.
fn state_folder(flag: Option<&Path>, roster: &Roster, me: NodeIndex) -> PathBuf {
    if let Some(path) = flag {
        return path.to_owned();
    }
    let name = roster.peers[me.usize()].node.as_str();
    let home = || {
        let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
        state.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state")))
    };
    let base = if rustix::process::geteuid().is_root() { None } else { home() };
    base.unwrap_or_else(|| PathBuf::from("/var/lib")).join("railmesh").join(name)
}
