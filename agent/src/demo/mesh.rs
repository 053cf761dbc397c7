//! Starting, striking and stopping the demo's agents.
//!
//! Agents die with this process (PDEATHSIG on the main thread, which lives as long as the process), and their workers
//! die with them.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bench_core::units::BitsPerSecond;
use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;
use tokio::task::JoinHandle;
use transport::control::identity::MeshKey;

use super::DemoFault;

/// What the demo's mesh is to be.
#[derive(Clone, Debug)]
pub struct DemoSpec {
    /// Agents.
    pub nodes: u8,
    /// Rails of each.
    pub rails: u8,
    /// Faults to be found.
    pub faults: Vec<DemoFault>,
    /// The pretended line rate; `None` sends as fast as the processor can.
    pub rate: Option<BitsPerSecond>,
    /// More log lines of the agents.
    pub verbose: u8,
}

/// Why a demo cannot be as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// A fault names a node that there is not.
    #[error("the fault strikes n{node}, but the nodes are n1 to n{nodes}")]
    Node {
        /// The node.
        node: u8,
        /// How many there are.
        nodes: u8,
    },
    /// A fault names a rail that there is not.
    #[error("the fault strikes rail r{rail}, but the rails are r0 to r{last}")]
    Rail {
        /// The rail.
        rail: u16,
        /// The last one.
        last: u8,
    },
    /// Slow compared with what.
    #[error("a slow rail needs a rate to be slower than: leave --rate at its default or name one")]
    NoRate,
}

/// The running agents. Dropping it kills them.
#[derive(Debug)]
pub struct DemoMesh {
    agents: Vec<Option<Child>>,
    strikes: Vec<DemoFault>,
    folder: tempfile::TempDir,
    key: PathBuf,
    address: String,
}

impl DemoSpec {
    /// Checks that the faults strike something that there is.
    ///
    /// # Errors
    /// [`SpecError`].
    pub fn check(&self) -> Result<(), SpecError> {
        for fault in &self.faults {
            if !(1..=self.nodes).contains(&fault.node()) {
                return Err(SpecError::Node { node: fault.node(), nodes: self.nodes });
            }
            match fault {
                DemoFault::Slow { rail, .. } if rail.0 >= u16::from(self.rails) => {
                    return Err(SpecError::Rail { rail: rail.0, last: self.rails.saturating_sub(1) });
                }
                DemoFault::Slow { .. } if self.rate.is_none() => return Err(SpecError::NoRate),
                DemoFault::Slow { .. }
                | DemoFault::Absent { .. }
                | DemoFault::Kill { .. }
                | DemoFault::Stop { .. } => {}
            }
        }
        Ok(())
    }

    /// One line for a person: what runs.
    pub fn announce(&self) -> String {
        let rate = match self.rate {
            Some(rate) => format!("each rail paced to {rate}, since loopback has no line rate"),
            None => {
                "as fast as the processor can: figures are those of this machine, not of a fabric".to_owned()
            }
        };
        format!("demo: {} agents with {} rails each on loopback addresses; {rate}", self.nodes, self.rails)
    }

    fn slow_rails(&self, node: u8) -> Vec<String> {
        let rate = self.rate.map_or(0.0, |rate| rate.0 / SLOW_FACTOR);
        let slow = self.faults.iter().filter_map(|fault| match fault {
            DemoFault::Slow { node: struck, rail } if *struck == node => {
                Some(format!("slow={rail}:{rate:.0}"))
            }
            DemoFault::Slow { .. }
            | DemoFault::Absent { .. }
            | DemoFault::Kill { .. }
            | DemoFault::Stop { .. } => None,
        });
        slow.collect()
    }

    fn is_absent(&self, node: u8) -> bool {
        self.faults.contains(&DemoFault::Absent { node })
    }
}

impl DemoMesh {
    /// Starts the agents; their logs go to `logs`.
    ///
    /// # Errors
    /// The kernel's refusal to make files or processes.
    pub async fn start(spec: &DemoSpec, logs: &Path) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let key = folder.path().join("mesh.key");
        MeshKey::generate().and_then(|made| made.write_new(&key)).map_err(io::Error::other)?;
        fs::create_dir_all(logs)?;
        let net = Net::free()?;
        let peers: Vec<String> =
            (1..=spec.nodes).map(|n| format!("n{n}={}:{}", net.control(n), net.port)).collect();
        let peers = peers.join(",");
        let program = std::env::current_exe()?;
        let mut agents = Vec::new();
        for node in 1..=spec.nodes {
            if spec.is_absent(node) {
                agents.push(None);
                continue;
            }
            let rails: Vec<String> = (0..spec.rails).map(|rail| net.rail(node, rail).to_string()).collect();
            let mut command = Command::new(&program);
            command
                .args(["agent", "--die-with-parent", "--name", &format!("n{node}"), "--peers", &peers])
                .args(["--rails", &rails.join(","), "--join-timeout", JOIN_TIMEOUT])
                .arg("--key")
                .arg(&key)
                .arg("--state")
                .arg(folder.path().join(format!("n{node}")));
            for slow in spec.slow_rails(node) {
                command.args(["--emulate", &slow]);
            }
            command.args(std::iter::repeat_n("-v", usize::from(spec.verbose)));
            command.env("RUST_BACKTRACE", "1").env("NO_COLOR", "1").process_group(0);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(File::create(logs.join(format!("n{node}.log")))?);
            agents.push(Some(command.spawn()?));
        }
        let started = (1..=spec.nodes).filter(|node| !spec.is_absent(*node));
        let addresses: Vec<String> =
            started.map(|node| format!("{}:{}", net.control(node), net.port)).collect();
        let strikes = spec.faults.clone();
        let address = addresses.join(",");
        Ok(Self { agents, strikes, folder, key, address })
    }

    /// Where the agents answer clients, in order, with commas between.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The mesh key's file.
    pub fn key(&self) -> &Path {
        &self.key
    }

    /// Strikes with the faults that happen during the run. The task ends after the last strike.
    pub fn strike_later(&self) -> JoinHandle<()> {
        let group = |node: u8| {
            let child = self.agents.get(usize::from(node) - 1).and_then(Option::as_ref);
            child.and_then(|child| Pid::from_raw(child.id().cast_signed()))
        };
        let strikes: Vec<(Pid, Signal)> = self
            .strikes
            .iter()
            .filter_map(|fault| match fault {
                DemoFault::Kill { node } => Some((group(*node)?, Signal::KILL)),
                DemoFault::Stop { node } => Some((group(*node)?, Signal::STOP)),
                DemoFault::Slow { .. } | DemoFault::Absent { .. } => None,
            })
            .collect();
        tokio::spawn(async move {
            tokio::time::sleep(STRIKE_AFTER).await;
            for (pid, signal) in strikes {
                // An agent that is gone needs no strike.
                let _: Result<_, _> = kill_process_group(pid, signal);
            }
        })
    }

    /// Ends the agents in order, and those that do not end by force.
    pub async fn stop(mut self) {
        for child in self.agents.iter().flatten() {
            signal(child, Signal::TERM);
            signal(child, Signal::CONT);
        }
        let patience = tokio::time::Instant::now() + STOP_LIMIT;
        for child in self.agents.iter_mut().flatten() {
            while matches!(child.try_wait(), Ok(None)) && tokio::time::Instant::now() < patience {
                tokio::time::sleep(STOP_PAUSE).await;
            }
        }
    }

    /// The folder of the agents' state.
    pub fn state(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for DemoMesh {
    fn drop(&mut self) {
        for child in self.agents.iter_mut().flatten() {
            if matches!(child.try_wait(), Ok(None)) {
                signal(child, Signal::KILL);
                // Reaps it; it has been killed.
                let _: Result<_, _> = child.wait();
            }
        }
    }
}

fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        // A group that is gone needs no signal.
        let _: Result<_, _> = kill_process_group(pid, signal);
    }
}

/// Loopback addresses for one demo: 127.x.node.1 for control, 127.x.node.(10 + rail) for rails.
struct Net {
    second: u8,
    port: u16,
}

impl Net {
    /// A port that is free on the first agent's address; the second octet keeps demos at the same time apart.
    fn free() -> io::Result<Self> {
        let second = 64 + (std::process::id() % 128) as u8;
        let probe = UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::new(127, second, 1, 1), 0))?;
        Ok(Self { second, port: probe.local_addr()?.port() })
    }

    fn control(&self, node: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, self.second, node, 1)
    }

    fn rail(&self, node: u8, rail: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, self.second, node, 10 + rail)
    }
}

/// A slow rail runs at this part of the rate: the fault that the namespace tests plant too.
const SLOW_FACTOR: f64 = 10.0;

/// How long the demo's run waits for an agent that was never started.
const JOIN_TIMEOUT: &str = "3s";

/// When agents are killed or stopped: inside the third round of the default plan.
const STRIKE_AFTER: Duration = Duration::from_millis(2_000);

/// How long agents may take to end in order.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// Pause between two looks at an ending agent.
const STOP_PAUSE: Duration = Duration::from_millis(10);
