//! A mesh of real agents, written as a list of steps: who starts and how, then what a client asks.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::process::{Finished, Process, run};
use super::program::program;
use super::report::Swept;
use super::site::Site;
use super::waiting::{PATIENCE, wait_for};

/// A mesh that is to be started.
#[derive(Debug)]
pub(crate) struct MeshSpec {
    site: Site,
    roster: Vec<String>,
    absent: Vec<u8>,
    flags: Vec<String>,
    own_flags: BTreeMap<u8, Vec<String>>,
    wrapper: Vec<String>,
    wrappers: BTreeMap<u8, Vec<String>>,
    unnamed: bool,
}

/// A running mesh. Dropping it kills the agents.
#[derive(Debug)]
pub(crate) struct Mesh {
    agents: BTreeMap<u8, Process>,
    spec: MeshSpec,
    folder: TempDir,
    ask: String,
}

/// A sweep that is on.
#[derive(Debug)]
pub(crate) struct Sweep {
    process: Process,
    out: PathBuf,
}

impl MeshSpec {
    /// All nodes of `site`, started alike.
    pub(crate) fn on(site: Site) -> Self {
        Self {
            roster: vec!["--peers".to_owned(), site.peers()],
            site,
            absent: Vec::new(),
            flags: Vec::new(),
            own_flags: BTreeMap::new(),
            wrapper: Vec::new(),
            wrappers: BTreeMap::new(),
            unnamed: false,
        }
    }

    /// Leaves a node out: its agent is never started.
    pub(crate) fn without(mut self, node: u8) -> Self {
        self.absent.push(node);
        self
    }

    /// Starts every agent with further flags.
    pub(crate) fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(owned(flags));
        self
    }

    /// Starts one agent with these flags, in place of others that were named for it.
    pub(crate) fn flags_of(mut self, node: u8, flags: &[&str]) -> Self {
        self.own_flags.insert(node, owned(flags));
        self
    }

    /// Names the roster by these flags instead of `--peers`, and lets the agents find their own place in it.
    pub(crate) fn roster(mut self, flags: &[&str]) -> Self {
        self.roster = owned(flags);
        self.unnamed = true;
        self
    }

    /// Starts every agent through another program.
    pub(crate) fn through(mut self, wrapper: &[&str]) -> Self {
        self.wrapper.extend(owned(wrapper));
        self
    }

    /// Starts one agent through another program.
    pub(crate) fn wrapped(mut self, node: u8, wrapper: &[&str]) -> Self {
        self.wrappers.insert(node, owned(wrapper));
        self
    }

    /// Starts the agents and returns at once.
    pub(crate) fn launch(self) -> Mesh {
        let folder = tempfile::tempdir().expect("a folder for key and state");
        run("keygen", Command::new(program()).arg("keygen").arg(folder.path().join("mesh.key")), PATIENCE)
            .exits(0);
        let nodes = self.site.nodes.len() as u8;
        let mut mesh =
            Mesh { agents: BTreeMap::new(), ask: self.site.node(1).control.to_string(), folder, spec: self };
        for node in 1..=nodes {
            if !mesh.spec.absent.contains(&node) {
                mesh.start_agent(node);
            }
        }
        mesh
    }

    /// Starts the agents and waits until all of them are members.
    pub(crate) fn start(self) -> Mesh {
        let present = self.site.nodes.len() - self.absent.len();
        let mesh = self.launch();
        mesh.await_members(present);
        mesh
    }
}

impl Mesh {
    /// Lets clients ask this node from now on.
    pub(crate) fn ask_node(mut self, node: u8) -> Self {
        self.ask = self.spec.site.node(node).control.to_string();
        self
    }

    /// Lets clients ask at this HOST:PORT from now on.
    pub(crate) fn ask_at(mut self, target: &str) -> Self {
        target.clone_into(&mut self.ask);
        self
    }

    /// Starts a node's agent (again).
    pub(crate) fn start_agent(&mut self, node: u8) {
        let name = self.spec.site.node(node).name.clone();
        let process = Process::start(&name, &mut self.agent_command(node));
        self.agents.insert(node, process);
    }

    /// Kills a node's agent and waits for its end.
    pub(crate) fn stop_agent(&mut self, node: u8) {
        self.agents.remove(&node);
    }

    /// Starts agents with further flags from now on.
    pub(crate) fn with_flags(mut self, flags: &[&str]) -> Self {
        self.spec = self.spec.flags(flags);
        self
    }

    /// The folder of a node's state.
    pub(crate) fn state(&self, node: u8) -> PathBuf {
        self.folder.path().join(&self.spec.site.node(node).name)
    }

    /// The instants, CLOCK_MONOTONIC in ns, at which a node began its first round of each epoch; with -v, every round.
    pub(crate) fn starts(&mut self, node: u8) -> Vec<u64> {
        self.rounds(node, "at_ns=", |value| value.parse().ok())
    }

    /// The terms of the epochs in whose rounds a node took part, in the order of its log.
    pub(crate) fn terms(&mut self, node: u8) -> Vec<u64> {
        self.rounds(node, "epoch=", |value| value.split('.').next()?.parse().ok())
    }

    fn rounds(&mut self, node: u8, field: &str, read: impl Fn(&str) -> Option<u64>) -> Vec<u64> {
        let log = self.agent(node).stderr();
        let lines = log.lines().filter(|line| line.contains(" takes part in "));
        let values = lines.filter_map(|line| line.split_once(field)?.1.split_whitespace().next());
        values.filter_map(read).collect()
    }

    /// The command line of a node's agent.
    pub(crate) fn agent_command(&self, node: u8) -> Command {
        self.agent_of(program(), node)
    }

    /// The same with another executable.
    pub(crate) fn agent_of(&self, executable: &Path, node: u8) -> Command {
        let site = self.spec.site.node(node);
        let own = self.spec.wrappers.get(&node).cloned().unwrap_or_default();
        let wrapper = [self.spec.wrapper.clone(), own].concat();
        let mut command = site.place.command(&wrapper, executable);
        command.args(["agent", "--die-with-parent"]).args(&self.spec.roster);
        if !self.spec.unnamed {
            command.args(["--name", &site.name]);
        }
        let rails: Vec<String> = site.rails.iter().map(ToString::to_string).collect();
        if !rails.is_empty() {
            command.args(["--rails", &rails.join(",")]);
        }
        command.arg("--key").arg(self.key());
        command.arg("--state").arg(self.state(node));
        command.args(&self.spec.flags).args(self.spec.own_flags.get(&node).into_iter().flatten());
        command
    }

    /// The mesh key.
    pub(crate) fn key(&self) -> PathBuf {
        self.folder.path().join("mesh.key")
    }

    /// A folder for files of the scenario.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The nodes.
    pub(crate) fn site(&self) -> &Site {
        &self.spec.site
    }

    /// A node's agent.
    pub(crate) fn agent(&mut self, node: u8) -> &mut Process {
        self.agents.get_mut(&node).expect("the scenario started this agent")
    }

    /// A node's agent, to wait for its end.
    pub(crate) fn take_agent(&mut self, node: u8) -> Process {
        self.agents.remove(&node).expect("the scenario started this agent")
    }

    /// All agents in the order of their nodes, to wait for their ends.
    pub(crate) fn take_agents(&mut self) -> Vec<Process> {
        std::mem::take(&mut self.agents).into_values().collect()
    }

    /// A client's command line: `words`, then where the mesh is and its key.
    pub(crate) fn client<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Command {
        self.client_with_key(words, &self.key())
    }

    /// The same with another key.
    pub(crate) fn client_with_key<W: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = W>,
        key: &Path,
    ) -> Command {
        let mut command = self.spec.site.client.command(&[], program());
        command.args(words).args(["--connect", &self.ask]).arg("--key").arg(key);
        command
    }

    /// Runs a client to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Finished {
        run(words[0], &mut self.client(words), PATIENCE)
    }

    /// What `status` prints, whatever its exit code.
    pub(crate) fn status(&self) -> String {
        let status = self.run(&["status"]);
        format!("{}{}", status.stdout, status.stderr)
    }

    /// Waits until `count` nodes are members.
    pub(crate) fn await_members(&self, count: usize) {
        let wanted = format!(" {count} of {}", self.spec.site.nodes.len());
        wait_for(&format!("{wanted} members"), PATIENCE, || {
            let status = self.status();
            let there = |line: &str| line.starts_with("members") && line.ends_with(&wanted);
            match status.lines().any(there) {
                true => Ok(()),
                false => Err(status),
            }
        });
    }

    /// Waits until at least `count` rounds are over and the next one is on.
    pub(crate) fn await_rounds(&self, count: u32) {
        wait_for(&format!("{count} rounds"), PATIENCE, || {
            let status = self.status();
            match rounds_over(&status) {
                Some(over) if over >= count => Ok(()),
                Some(_) | None => Err(status),
            }
        });
    }

    /// Submits a sweep that writes its run folder; returns while it is on.
    pub(crate) fn begin_sweep(&self, flags: &[&str]) -> Sweep {
        let out = tempfile::tempdir_in(self.folder.path()).expect("a run folder").keep();
        let mut command = self.client(["sweep"]);
        command.args(flags).arg("--out").arg(&out);
        let process = Process::start("sweep", &mut command);
        Sweep { process, out }
    }

    /// A whole sweep.
    pub(crate) fn sweep(&self, flags: &[&str]) -> Swept {
        self.begin_sweep(flags).end()
    }
}

impl Sweep {
    /// Waits for the end of the sweep.
    pub(crate) fn end(self) -> Swept {
        Swept::of(self.process.finish(SWEEP_LIMIT), &self.out)
    }

    /// The client.
    pub(crate) fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The run folder.
    pub(crate) fn out(&self) -> &Path {
        &self.out
    }
}

/// Rounds that `status` calls over; `None` without a run.
fn rounds_over(status: &str) -> Option<u32> {
    let line = status.lines().find(|line| line.starts_with("run "))?;
    let (before, _) = line.split_once(" of ")?;
    before.rsplit(' ').next()?.parse().ok()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Longest sweep of a scenario: one that waits for silent nodes takes about a minute.
const SWEEP_LIMIT: Duration = Duration::from_secs(180);
