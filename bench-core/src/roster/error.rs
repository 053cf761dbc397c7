//! Why a text or a set of addresses is not a roster.

use thiserror::Error;

use crate::ids::{NodeId, NodeIdError};

/// Why a text or a set of addresses is not a roster.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RosterError {
    /// No peer at all.
    #[error("the list of peers is empty, name at least one such as gpu-[001-064]:7777")]
    Empty,
    /// More peers than a mesh may have.
    #[error("more than {max} peers, a mesh has at most {max}")]
    TooMany {
        /// The most there may be.
        max: usize,
    },
    /// A name that no node can have.
    #[error("{0}; give it another one with name=host:port")]
    Name(#[from] NodeIdError),
    /// A host that is neither a name nor an address.
    #[error(
        "{host:?} is neither a host name nor an address (an IPv6 address stands in brackets: [fd00::1]:7777)"
    )]
    Host {
        /// The refused text.
        host: String,
    },
    /// A port that is not one.
    #[error("{port:?} in {peer:?} is not a port, which is a number from 1 to 65535")]
    Port {
        /// The refused text.
        port: String,
        /// The peer as written.
        peer: String,
    },
    /// A range in brackets that cannot be read.
    #[error("{range:?} in {pattern:?} is not a range such as [001-064] or [1-3,7]: {problem}")]
    Range {
        /// The part at fault.
        range: String,
        /// The whole pattern.
        pattern: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A pattern of names and a pattern of hosts of different lengths.
    #[error("{peer:?} has {names} names for {hosts} hosts, give each host one name")]
    Unequal {
        /// The peer as written.
        peer: String,
        /// How many names.
        names: usize,
        /// How many hosts.
        hosts: usize,
    },
    /// The same name twice.
    #[error("{name} stands in the list of peers twice, name each node once")]
    RepeatedName {
        /// The name.
        name: NodeId,
    },
    /// The same address under two names.
    #[error("{first} and {second} have the same address {host} port {port}, give each agent its own")]
    RepeatedAddress {
        /// The name that came first.
        first: NodeId,
        /// The other name.
        second: NodeId,
        /// The host of both.
        host: String,
        /// The port of both.
        port: u16,
    },
    /// A line of a hostfile at fault.
    #[error("line {line}: {source}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong there.
        source: Box<Self>,
    },
    /// A word in a hostfile that says nothing known.
    #[error("{word:?} is not understood: a line has one host, then words such as slots=8, which are ignored")]
    Word {
        /// The word.
        word: String,
    },
    /// Another number of addresses than expected.
    #[error("found {found} addresses, expected {expected}: wait until every pod is up, or correct --expect")]
    Count {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A number of electors that cannot decide.
    #[error(
        "{electors} electors of {nodes} nodes: it must be an odd number, at most {max} and at most the nodes"
    )]
    Electors {
        /// The wanted number.
        electors: usize,
        /// Nodes in the roster.
        nodes: usize,
        /// The most there may be.
        max: u16,
    },
}
