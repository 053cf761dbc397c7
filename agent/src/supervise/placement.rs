//! Which processors the agent and its workers use.
//!
//! The agent's event loop has a core of its own so that a spinning worker never delays a heartbeat, and a heartbeat
//! never lands in a latency sample. Workers use the processors next to their device.

use std::fs;
use std::path::{Path, PathBuf};

use bench_core::node::RailEndpoint;

use super::link::WorkerSpec;
use crate::cpus::CpuSet;

/// The core that the agent pins itself to, and workers never take: the lowest allowed one.
///
/// `None` on machines of [`FEW_CPUS`] or fewer, where the agent shares with its workers.
pub fn agent_core(allowed: &CpuSet) -> Option<u32> {
    if allowed.len() > FEW_CPUS { allowed.lowest() } else { None }
}

/// Where the workers of one rail run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Their processors; empty only if none is allowed at all.
    pub cpus: CpuSet,
    /// What a reader of latency figures should know about it.
    pub note: Option<String>,
}

/// Where the workers of a rail run: on the allowed processors of the device's NUMA node (all allowed ones where the
/// node is unknown or closed to this process), minus the agent's core.
///
/// `allowed` is what the agent may use before it pins itself; `agent_core` is from [`agent_core`].
pub fn placement(allowed: &CpuSet, numa: Option<&CpuSet>, agent_core: Option<u32>) -> Placement {
    let free = match agent_core {
        Some(core) => allowed.clone().without(core),
        None => allowed.clone(),
    };
    let near = numa.map(|numa| free.and(numa));
    let shared = agent_core.is_none().then(|| {
        format!(
            "{} processors: the agent shares them with its workers, so latency figures include the agent's work",
            allowed.len()
        )
    });
    match (near, numa) {
        (Some(near), _) if !near.is_empty() => Placement { cpus: near, note: shared },
        (Some(_), Some(numa)) => Placement {
            note: Some(shared.unwrap_or_else(|| {
                format!("no free processor near the device (its NUMA node has {numa}, free are {free}): measured from afar")
            })),
            cpus: free,
        },
        (None | Some(_), _) => Placement { cpus: free, note: shared },
    }
}

/// Places the workers of a node near their devices.
#[derive(Clone, Debug)]
pub struct Placer {
    /// What the agent may use before it pins itself.
    pub allowed: CpuSet,
    /// From [`agent_core`].
    pub agent_core: Option<u32>,
    /// Where sysfs is looked for (`/`).
    pub root: PathBuf,
}

impl Placer {
    /// What the worker of a rail is for, placed near the rail's device.
    pub fn spec(&self, endpoint: &RailEndpoint) -> WorkerSpec {
        let cpus = self.placement(endpoint).cpus;
        WorkerSpec { rail: endpoint.rail, cpus: (!cpus.is_empty()).then_some(cpus) }
    }

    /// What a reader should know of the places of these rails, each once.
    pub fn notes(&self, rails: &[RailEndpoint]) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for note in rails.iter().filter_map(|endpoint| self.placement(endpoint).note) {
            // A note on the whole node is the same for every rail.
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }

    fn placement(&self, endpoint: &RailEndpoint) -> Placement {
        let near = endpoint.numa.and_then(|node| numa_cpus(&self.root, node));
        placement(&self.allowed, near.as_ref(), self.agent_core)
    }
}

/// The processors of a NUMA node, from sysfs under `root` (`/` on a live machine); `None` where the kernel does not
/// tell.
pub fn numa_cpus(root: &Path, node: u32) -> Option<CpuSet> {
    let list = root.join(format!("sys/devices/system/node/node{node}/cpulist"));
    fs::read_to_string(list).ok()?.parse().ok()
}

/// On this many processors or fewer, giving one to the agent would cost the measurement more than sharing does: a
/// source, a destination and their interrupts need one each.
pub const FEW_CPUS: usize = 4;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use bench_core::ids::RailId;

    use super::*;

    fn cpus(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    #[test]
    fn workers_run_near_their_device_and_off_the_agents_core() {
        let allowed = cpus("0-15");
        let core = agent_core(&allowed);
        assert_eq!(core, Some(0));
        let near = placement(&allowed, Some(&cpus("0-7")), core);
        assert_eq!((near.cpus.to_string(), near.note), ("1-7".to_owned(), None));
        let far = placement(&allowed, Some(&cpus("8-15")), core);
        assert_eq!((far.cpus.to_string(), far.note), ("8-15".to_owned(), None));
        assert_eq!(placement(&allowed, None, core).cpus, cpus("1-15"));
    }

    #[test]
    fn a_few_processors_are_shared_and_a_note_says_so() {
        let allowed = cpus("2-5");
        assert_eq!(agent_core(&allowed), None);
        let shared = placement(&allowed, Some(&cpus("0-3")), None);
        assert_eq!(shared.cpus, cpus("2-3"));
        assert!(shared.note.unwrap().starts_with("4 processors: the agent shares them"));
        assert_eq!(agent_core(&cpus("2-6")), Some(2));
    }

    #[test]
    fn a_node_without_a_free_processor_is_measured_from_afar_and_a_note_says_so() {
        let allowed = cpus("0,8-15");
        for numa in ["0-7", "16-23"] {
            let afar = placement(&allowed, Some(&cpus(numa)), Some(0));
            assert_eq!(afar.cpus, cpus("8-15"), "node {numa}");
            assert!(afar.note.unwrap().contains("measured from afar"));
        }
    }

    #[test]
    fn each_rail_is_placed_by_the_numa_node_that_sysfs_tells() {
        let root = tempfile::tempdir().unwrap();
        let node = root.path().join("sys/devices/system/node/node1");
        fs::create_dir_all(&node).unwrap();
        fs::write(node.join("cpulist"), "8-15\n").unwrap();
        assert_eq!(numa_cpus(root.path(), 1), Some(cpus("8-15")));
        assert_eq!(numa_cpus(root.path(), 2), None);

        let rail = |rail, numa| RailEndpoint {
            numa,
            ..RailEndpoint::plain(
                RailId(rail),
                format!("eth{rail}"),
                Ipv4Addr::LOCALHOST.into(),
                String::new(),
            )
        };
        let rails = [rail(0, Some(1)), rail(1, Some(2)), rail(2, None)];
        let placed = |allowed: &str, core| {
            let placer = Placer { allowed: cpus(allowed), agent_core: core, root: root.path().to_owned() };
            let list = |rail| placer.spec(rail).cpus.map(|cpus| cpus.to_string());
            (rails.iter().map(list).collect::<Vec<_>>(), placer.notes(&rails).len())
        };
        let list = |list: &str| Some(list.to_owned());
        assert_eq!(placed("0-15", Some(0)), (vec![list("8-15"), list("1-15"), list("1-15")], 0));
        assert_eq!(placed("7-8", None), (vec![list("8"), list("7-8"), list("7-8")], 1));
    }
}
