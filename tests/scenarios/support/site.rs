//! Where the nodes of a mesh are: all on loopback addresses, or each in a network namespace of its own.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

/// Where a process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// With this test.
    Here,
    /// In a network namespace.
    Namespace(String),
}

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct NodeSite {
    /// Its name in the roster.
    pub(crate) name: String,
    /// Where its agent runs.
    pub(crate) place: Place,
    /// Where its agent is reached.
    pub(crate) control: SocketAddr,
    /// Its rails' addresses; empty lets the agent choose by its rule.
    pub(crate) rails: Vec<IpAddr>,
}

/// The nodes of a mesh and the place of its clients.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The nodes, in roster order.
    pub(crate) nodes: Vec<NodeSite>,
    /// Where clients run.
    pub(crate) client: Place,
}

impl Place {
    /// A command that runs `program` there, through the programs of `wrapper`.
    pub(crate) fn command(&self, wrapper: &[String], program: impl AsRef<OsStr>) -> Command {
        let mut words: Vec<&OsStr> = Vec::new();
        if let Self::Namespace(name) = self {
            words.extend(["ip", "netns", "exec", name].map(OsStr::new));
        }
        words.extend(wrapper.iter().map(OsStr::new));
        words.push(program.as_ref());
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        command
    }
}

impl Site {
    /// Nodes `n1`, `n2` … on loopback addresses of their own: 127.x.node.1 for control, 127.x.node.(10 + rail) for
    /// rails. The port is free on the first node, and no two meshes of this process share x.
    pub(crate) fn loopback(nodes: u8, rails: u8) -> Self {
        static MESHES: AtomicU8 = AtomicU8::new(0);
        let mesh = u32::from(MESHES.fetch_add(1, Ordering::Relaxed));
        let x = 1 + ((std::process::id() + mesh) % LOOPBACK_SITES) as u8;
        let free = UdpSocket::bind((Ipv4Addr::new(127, x, 1, 1), 0)).expect("loopback has free ports");
        let port = free.local_addr().expect("a bound socket has an address").port();
        let node = |node: u8| NodeSite {
            name: format!("n{node}"),
            place: Place::Here,
            control: (Ipv4Addr::new(127, x, node, 1), port).into(),
            rails: (0..rails).map(|rail| Ipv4Addr::new(127, x, node, 10 + rail).into()).collect(),
        };
        Self { nodes: (1..=nodes).map(node).collect(), client: Place::Here }
    }

    /// The roster for `--peers`.
    pub(crate) fn peers(&self) -> String {
        let peers: Vec<String> =
            self.nodes.iter().map(|node| format!("{}={}", node.name, node.control)).collect();
        peers.join(",")
    }

    /// The node of this number, counted from 1 as in the names.
    pub(crate) fn node(&self, number: u8) -> &NodeSite {
        &self.nodes[usize::from(number) - 1]
    }
}

/// Second octets of scenarios: 127.1 to 127.60. The demo's begin at 127.64.
const LOOPBACK_SITES: u32 = 60;
