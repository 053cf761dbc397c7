//! `railmesh agent --run PLAN --exit-when-done`: the shell around [`OneShot`], which asks, shows and prints.
//!
//! | task | owner | ends when | cancelling it is safe because |
//! |---|---|---|---|
//! | showing the run | [`Show`] | the run is over, or another node shows it | it only reads, and writes whole files |

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use bench_core::ids::{NodeId, RunId};
use bench_core::message::{Attend, AttendReply, Attending, Outcome};
use bench_core::plan::{Plan, PlanSpec};
use tokio::task::JoinHandle;
use transport::clock;
use transport::control::identity::{Holder, Identity, MeshKey};

use crate::cli::args::AgentArgs;
use crate::cli::exit::{Exit, ExitError};
use crate::cli::following::{client_error, conclude};
use crate::client::{Client, FollowError, Followed, RunSink, follow};
use crate::node::{Agent, AgentConfig, AgentError};
use crate::one_shot::{Ending, Memory, OneShot, Showing, Step, folder_of};
use crate::output::RunFolder;
use crate::runtime;

/// What a one-shot agent is to do.
#[derive(Clone, Debug)]
pub(super) struct Job {
    run: RunId,
    plan: Plan,
    me: NodeId,
    out: PathBuf,
    json: bool,
    /// This agent as a client of itself.
    connect: String,
    key: Option<PathBuf>,
    state: PathBuf,
    patience: Duration,
}

impl Job {
    /// The job of the flags; `None` for an agent that only serves.
    ///
    /// # Errors
    /// Exit code 2 for a plan that cannot be used.
    pub(super) fn of(args: &AgentArgs, config: &AgentConfig) -> Result<Option<Self>, ExitError> {
        let Some(path) = &args.run else { return Ok(None) };
        let plan = read_plan(path)?;
        let word = args.job.clone().or_else(|| std::env::var(SLURM_JOB).ok()).unwrap_or_default();
        let key = config.key.clone().unwrap_or_else(MeshKey::loopback);
        let mesh = Identity::issue(&key, Holder::Client).map_err(ExitError::usage)?.mesh_id();
        let run = RunId::of_job(mesh, config.roster.hash(), plan.hash(), &word);
        Ok(Some(Self {
            run,
            me: config.roster.peers[config.me.usize()].node.clone(),
            out: args.out.clone().unwrap_or_else(|| PathBuf::from("railmesh-runs").join(run.to_string())),
            json: args.json,
            connect: own_address(config).to_string(),
            key: args.key.clone(),
            state: folder_of(&config.state, run)
                .map_err(|source| AgentError::State { path: config.state.clone(), source })
                .map_err(ExitError::usage)?,
            patience: config.join_timeout + ELECTION_PATIENCE,
            plan,
        }))
    }

    /// Where this run's state is kept.
    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    /// How the run ended, if it had ended before this process started.
    ///
    /// # Errors
    /// Exit code 2 if the state folder does not say it properly.
    pub(super) fn ended_before(&self) -> Result<Option<Exit>, ExitError> {
        let memory = Memory::read(&self.state, self.run).map_err(ExitError::usage)?;
        Ok(memory.map(|Memory { outcome, printed_by, .. }| {
            eprintln!(
                "run {} has ended before: {}; to measure again, start every node with another --job",
                self.run,
                words(&outcome, printed_by.as_ref(), &self.me)
            );
            exit_of(&outcome)
        }))
    }

    /// Takes part until the run is over and nobody needs this node.
    ///
    /// # Errors
    /// Exit code 2 if the nodes do not mean the same run, 3 if there is no mesh that could measure.
    pub(super) async fn play(&self, agent: &Agent) -> Result<Exit, ExitError> {
        let mut one_shot = OneShot::new(self.me.clone(), self.patience, clock::now());
        let mut show = Show::Nothing;
        let mut remembered = false;
        let mut interrupted = std::pin::pin!(runtime::interrupted());
        tracing::info!(run = %self.run, "takes part in the run");
        loop {
            match one_shot.next(clock::now()) {
                Step::Ask(attending) => tokio::select! {
                    () = self.ask(agent, &mut one_shot, attending) => {}
                    () = &mut interrupted => one_shot.interrupt(),
                },
                Step::Print => tokio::select! {
                    () = self.print(&mut show) => one_shot.printed(clock::now()),
                    () = &mut interrupted => one_shot.interrupt(),
                },
                Step::End(ending) => return self.end(ending),
            }
            match one_shot.showing() {
                Showing::Live => show.go_on(self),
                Showing::ToTheEnd => {}
                Showing::Not => show.stop(),
            }
            if let (false, Some((outcome, printed_by))) = (remembered, one_shot.over()) {
                remembered = true;
                self.remember(outcome, printed_by);
            }
        }
    }

    async fn ask(&self, agent: &Agent, one_shot: &mut OneShot, attending: Attending) {
        let attend = Attend {
            node: self.me.clone(),
            run: self.run,
            plan: Box::new(self.plan.clone()),
            attending,
            printed_by: one_shot.printed_by().cloned(),
            last: one_shot.last().cloned(),
            wait: ASK_WAIT,
        };
        match agent.attend(attend).await {
            Ok(reply) => {
                if let AttendReply::Gathering { missing } = &reply {
                    let missing: Vec<&str> = missing.iter().map(NodeId::as_str).collect();
                    tracing::info!(missing = missing.join(", "), "waits for the other nodes");
                }
                one_shot.hear(reply, agent.part(), clock::now());
            }
            Err(reason) => {
                one_shot.hear_nothing(reason, clock::now());
                tokio::time::sleep(SILENCE_PAUSE).await;
            }
        }
    }

    /// Prints the report; what cannot be had is said instead, since the other nodes wait for the end of this.
    async fn print(&self, show: &mut Show) {
        let shown = match std::mem::replace(show, Show::Nothing) {
            Show::On(task) => match task.await {
                Ok(Ok((sink, Ok(ended)))) => Ok((sink, Ok(ended))),
                // It began before the coordinator knew the run, or lost it.
                Ok(Ok((_, Err(_))) | Err(_)) | Err(_) => follow_here(self.clone()).await,
            },
            Show::Nothing => follow_here(self.clone()).await,
        };
        let printed = shown.and_then(|(sink, ended)| conclude(sink, ended, self.json));
        if let Err(error) = printed {
            eprintln!("error: {error}");
        }
    }

    fn remember(&self, outcome: &Outcome, printed_by: Option<&NodeId>) {
        let memory = Memory { run: self.run, outcome: outcome.clone(), printed_by: printed_by.cloned() };
        if let Err(error) = memory.write(&self.state) {
            tracing::warn!(%error, "this node would not know the end after a restart");
        }
    }

    fn end(&self, ending: Ending) -> Result<Exit, ExitError> {
        match ending {
            Ending::Over { outcome, printed_by } => {
                if printed_by.as_ref() != Some(&self.me) {
                    eprintln!("run {}: {}", self.run, words(&outcome, printed_by.as_ref(), &self.me));
                }
                Ok(exit_of(&outcome))
            }
            Ending::Refused { reason } => Err(ExitError::usage(anyhow!("{reason}; nothing was measured"))),
            Ending::Alone { reason } => {
                Err(ExitError::not_measured(anyhow!("run {} has no verdict: {reason}", self.run)))
            }
        }
    }
}

/// The run as it is shown while it goes on.
enum Show {
    Nothing,
    On(JoinHandle<Shown>),
}

/// Records with the way the following of them ended.
type Shown = Result<(RunSink, Result<Followed, FollowError>), ExitError>;

impl Show {
    /// Begins to show, again if it broke off.
    fn go_on(&mut self, job: &Job) {
        match self {
            Self::On(task) if !task.is_finished() => {}
            Self::On(_) | Self::Nothing => *self = Self::On(tokio::spawn(follow_here(job.clone()))),
        }
    }

    fn stop(&mut self) {
        if let Self::On(task) = std::mem::replace(self, Self::Nothing) {
            task.abort();
        }
    }
}

/// Follows the run as a client of this node's own agent.
async fn follow_here(job: Job) -> Shown {
    let mut client = Client::connect(&job.connect, job.key.as_deref()).await.map_err(client_error)?;
    let folder = match RunFolder::of_run(job.out.clone(), job.run) {
        Ok(folder) => Some(folder),
        Err(error) => {
            eprintln!("error: {error}; the report goes to stdout alone");
            None
        }
    };
    let mut sink = RunSink::new(folder);
    let ended = follow(&mut client, Some(job.run), true, &mut sink).await;
    client.close().await;
    Ok((sink, ended))
}

fn read_plan(path: &Path) -> Result<Plan, ExitError> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("--run: cannot read the plan {}", path.display()))
        .map_err(ExitError::usage)?;
    let spec = PlanSpec::from_toml(&text)
        .with_context(|| format!("--run: the plan {} is not valid", path.display()))
        .map_err(ExitError::usage)?;
    spec.validate().with_context(|| format!("--run {}", path.display())).map_err(ExitError::usage)
}

/// Where this agent reaches itself.
fn own_address(config: &AgentConfig) -> std::net::SocketAddr {
    match config.listen.ip().is_unspecified() {
        true => (std::net::Ipv4Addr::LOCALHOST, config.listen.port()).into(),
        false => config.listen,
    }
}

fn words(outcome: &Outcome, printed_by: Option<&NodeId>, me: &NodeId) -> String {
    let place = match printed_by {
        Some(node) if node == me => "the report was printed here".to_owned(),
        Some(node) => format!("the report is on {node}'s stdout"),
        None => "nobody is known to have printed the report".to_owned(),
    };
    format!("{} (exit code {}); {place}", outcome.words, outcome.exit_code)
}

fn exit_of(outcome: &Outcome) -> Exit {
    match outcome.exit_code {
        0 => Exit::Pass,
        1 => Exit::Fail,
        _ => Exit::NotMeasured,
    }
}

/// Slurm's word for a job.
const SLURM_JOB: &str = "SLURM_JOB_ID";

/// How much longer than the join timeout an agent bears to be without a coordinator: founding takes that timeout where
/// electors are absent, and then comes an election.
const ELECTION_PATIENCE: Duration = Duration::from_secs(15);

/// How long the coordinator may hold an answer back: its own limit.
const ASK_WAIT: Duration = Duration::from_secs(10);

/// Pause after a question that nobody answered.
const SILENCE_PAUSE: Duration = Duration::from_millis(200);
