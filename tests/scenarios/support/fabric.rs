//! A small cluster out of network namespaces: nodes with a control interface and rails, and the switches between them.
//!
//! ```text
//!  n1: ctl rail0 rail1        cli: ctl
//!       │    │     │                │        veth pairs; in the switch's namespace their other ends are
//!  sw: ─ctl──┼─────┼────────────────┘        n1.ctl, n1.rail0 …, each in the bridge of its network
//!      ────rail0───┼──
//!      ──────────rail1─
//! ```
//! Every rail is held at [`LINE_RATE`] by a token bucket at both ends, so that the processors of a small machine do
//! not decide the figures. Needs root, `ip`, `tc` and `taskset`. Dropping it ends every process inside and removes the namespaces.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use railmesh::cpus::CpuSet;

use super::mesh::MeshSpec;
use super::site::{NodeSite, Place, Site};

/// The namespaces of one cluster.
#[derive(Debug)]
pub(crate) struct Fabric {
    nodes: Vec<Namespace>,
    client: Namespace,
    switch: Namespace,
}

/// Which way of a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// What the node sends.
    Send,
    /// What it sends and what it receives.
    Both,
}

/// A network namespace. Dropping it kills every process in it and removes it.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
}

impl Fabric {
    /// A sound cluster of nodes n1, n2 … with as many rails each, and a namespace for clients.
    pub(crate) fn new(nodes: u8, rails: u8) -> Self {
        let tag = Namespace::new_tag();
        let switch = Namespace::new(&tag, "sw");
        let networks = network_names(rails);
        for network in &networks {
            switch.ip(&["link", "add", network, "type", "bridge"]);
            switch.ip(&["link", "set", network, "up"]);
        }
        let fabric = Self {
            nodes: (1..=nodes).map(|node| Namespace::new(&tag, &format!("n{node}"))).collect(),
            client: Namespace::new(&tag, "cli"),
            switch,
        };
        for (i, namespace) in fabric.nodes.iter().enumerate() {
            for (j, network) in networks.iter().enumerate() {
                let address = Ipv4Addr::new(10, 77, j as u8, i as u8 + 1);
                fabric.plug_in(namespace, &format!("n{}", i + 1), network, address);
            }
            for rail in 0..rails {
                fabric.limit(i as u8 + 1, rail, Way::Both, LINE_RATE);
            }
        }
        fabric.plug_in(&fabric.client, "cli", CONTROL, CLIENT);
        fabric
    }

    /// Holds one rail of one node at `rate`.
    pub(crate) fn limit(&self, node: u8, rail: u8, way: Way, rate: &str) {
        let device = format!("rail{rail}");
        self.node(node).hold_at(&device, rate);
        match way {
            Way::Send => {}
            Way::Both => self.switch.hold_at(&format!("n{node}.{device}"), rate),
        }
    }

    /// Gives a device of a node another name; its address, rate and place stay.
    pub(crate) fn rename(&self, node: u8, device: &str, name: &str) {
        let namespace = self.node(node);
        namespace.ip(&["link", "set", device, "down"]);
        namespace.ip(&["link", "set", device, "name", name]);
        namespace.ip(&["link", "set", name, "up"]);
    }

    /// Pulls the plug of a node's control interface, at the switch.
    pub(crate) fn unplug_control(&self, node: u8) {
        self.switch.ip(&["link", "set", &format!("n{node}.{CONTROL}"), "down"]);
    }

    /// Puts it back.
    pub(crate) fn replug_control(&self, node: u8) {
        self.switch.ip(&["link", "set", &format!("n{node}.{CONTROL}"), "up"]);
    }

    /// Drops what a node sends to another on the control network; what that one sends still arrives.
    pub(crate) fn deafen(&self, sender: u8, receiver: u8) {
        let receiver = format!("{}/32", control_address(receiver));
        self.node(sender).ip(&["route", "add", "blackhole", &receiver]);
    }

    /// Holds the control interfaces at `rate`, both ways.
    pub(crate) fn limit_control(&self, rate: &str) {
        for node in 1..=self.nodes.len() as u8 {
            self.node(node).hold_at(CONTROL, rate);
            self.switch.hold_at(&format!("n{node}.{CONTROL}"), rate);
        }
    }

    /// Another namespace on the control network.
    pub(crate) fn host(&self, name: &str, address: Ipv4Addr) -> Namespace {
        let tag = self.switch.name.trim_end_matches("sw");
        let host = Namespace::new(tag, name);
        self.plug_in(&host, name, CONTROL, address);
        host
    }

    /// The namespace of a node.
    pub(crate) fn node(&self, node: u8) -> &Namespace {
        &self.nodes[usize::from(node) - 1]
    }

    /// The namespaces of nodes and clients.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.nodes.iter().chain([&self.client])
    }

    /// The nodes as a mesh sees them; the agents choose their rails by their own rule.
    pub(crate) fn site(&self) -> Site {
        let node = |(i, namespace): (usize, &Namespace)| NodeSite {
            name: format!("n{}", i + 1),
            place: namespace.place(),
            control: (control_address(i as u8 + 1), PORT).into(),
            rails: Vec::new(),
        };
        Site { nodes: self.nodes.iter().enumerate().map(node).collect(), client: self.client.place() }
    }

    /// A mesh of agents in all of its nodes.
    pub(crate) fn mesh(&self) -> MeshSpec {
        MeshSpec::on(self.site()).through(&["nice", "-n", PRIORITY])
    }

    /// The same on one processor, where latencies are measured: where two of the nodes share one and others do not, an
    /// exchange takes 14 us or 45 us by the scheduler's choice, and the population gate finds that.
    pub(crate) fn mesh_on_one_processor(&self) -> MeshSpec {
        let allowed = CpuSet::of_this_thread().expect("the kernel tells the allowed processors");
        // Not the lowest: it serves most of the machine's interrupts.
        let one = allowed.iter().last().expect("this thread runs somewhere").to_string();
        self.mesh().through(&["taskset", "-c", &one])
    }

    fn plug_in(&self, namespace: &Namespace, name: &str, network: &str, address: Ipv4Addr) {
        let port = format!("{name}.{network}");
        let other = self.switch.name.as_str();
        namespace.ip(&["link", "add", network, "type", "veth", "peer", "name", &port, "netns", other]);
        self.switch.ip(&["link", "set", &port, "master", network, "up"]);
        namespace.ip(&["addr", "add", &format!("{address}/24"), "dev", network]);
        namespace.ip(&["link", "set", network, "up"]);
        if network == CONTROL {
            // The front-end of a node is what carries its default route.
            namespace.ip(&["route", "add", "default", "via", "10.77.0.254", "dev", network]);
        }
    }
}

impl Namespace {
    /// Names of one cluster begin alike and differ from those of every other, also of other processes.
    fn new_tag() -> String {
        static CLUSTERS: AtomicU32 = AtomicU32::new(0);
        let cluster = CLUSTERS.fetch_add(1, Ordering::Relaxed);
        format!("{PREFIX}-{}-{cluster}-", std::process::id())
    }

    fn new(tag: &str, name: &str) -> Self {
        let name = format!("{tag}{name}");
        tool("ip", &["netns", "add", &name]);
        let made = Self { name };
        made.ip(&["link", "set", "lo", "up"]);
        made
    }

    /// Where processes run in it.
    pub(crate) fn place(&self) -> Place {
        Place::Namespace(self.name.clone())
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn ip(&self, words: &[&str]) {
        tool("ip", &[&["-n", self.name.as_str()], words].concat());
    }

    /// A token bucket for what leaves by `device`.
    fn hold_at(&self, device: &str, rate: &str) {
        let bucket = ["root", "tbf", "rate", rate, "burst", BURST, "latency", LATENCY];
        let words = ["-n", self.name.as_str(), "qdisc", "replace", "dev", device];
        tool("tc", &[words.as_slice(), &bucket].concat());
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let inside = Command::new("ip").args(["netns", "pids", &self.name]).output();
        let pids = inside.map(|output| output.stdout).unwrap_or_default();
        for pid in String::from_utf8_lossy(&pids).split_whitespace() {
            // What has ended meanwhile needs no signal.
            let _: Result<_, _> = Command::new("kill").args(["-9", pid]).status();
        }
        let removed = Command::new("ip").args(["netns", "del", &self.name]).status();
        if !removed.is_ok_and(|status| status.success()) {
            eprintln!("the namespace {} could not be removed", self.name);
        }
    }
}

/// Where the agent of a node is reached.
pub(crate) fn control_address(node: u8) -> IpAddr {
    Ipv4Addr::new(10, 77, 0, node).into()
}

fn network_names(rails: u8) -> Vec<String> {
    let rails = (0..rails).map(|rail| format!("rail{rail}"));
    std::iter::once(CONTROL.to_owned()).chain(rails).collect()
}

/// Runs a tool of the system that must work.
fn tool(program: &str, words: &[&str]) {
    let output = Command::new(program).args(words).output().unwrap_or_else(|error| {
        panic!("{program} cannot be started: {error}; tests/netns/run.sh says what is needed")
    });
    assert!(
        output.status.success(),
        "{program} {}: {} (these scenarios need root: see tests/netns/run.sh)",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Begin of every namespace of these tests; run.sh removes what a killed test left.
const PREFIX: &str = "rmtest";

/// The control network, and the interface of a node in it.
const CONTROL: &str = "ctl";

/// UDP port of the agents.
pub(crate) const PORT: u16 = 7777;

/// Where clients run on the control network.
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 200);

/// Line rate of every rail: one processor carries the two cells of a round in a debug build with room to spare.
pub(crate) const LINE_RATE: &str = "200mbit";

/// A tenth of it.
pub(crate) const TENTH: &str = "20mbit";

/// Depth of the token buckets: above the largest packet of a veth (64 KiB with segmentation left to the device), so
/// that none is cut; 10 ms at the line rate, little against a window.
const BURST: &str = "256kb";

/// Niceness of the agents: a build beside them on the same machine is not what is measured.
const PRIORITY: &str = "-10";

/// Longest queue of the token buckets, as time: about a switch's buffer.
const LATENCY: &str = "20ms";
