//! From the roster's flags to the roster, and this node's place in it.

use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use anyhow::{Context as _, anyhow};
use bench_core::ids::{Generation, NodeId, NodeIndex};
use bench_core::roster::{Peer, Roster, parse_hostfile, parse_peers, parse_pod_pattern};
use transport::control::resolve::Resolver;

use super::args::AgentArgs;
use super::exit::ExitError;
use crate::inventory::Interface;

/// Where the roster comes from.
#[derive(Clone, Debug)]
pub(crate) enum RosterSource {
    /// The flags.
    Known(Roster),
    /// The addresses of a Service, which all agents have to confirm.
    Service {
        /// NAME or NAME:PORT.
        service: String,
        /// How many there must be.
        expect: usize,
    },
}

/// The roster that the flags name.
///
/// # Errors
/// Exit code 2 for what was typed.
pub(crate) fn resolve(args: &AgentArgs) -> Result<RosterSource, ExitError> {
    let peers = match (&args.peers, &args.hostfile, &args.service) {
        (Some(list), _, _) => parse_peers(list, DEFAULT_PORT).context("--peers").map_err(ExitError::usage)?,
        (None, Some(path), _) => {
            let text = fs::read_to_string(path)
                .with_context(|| format!("--hostfile: cannot read {}", path.display()))
                .map_err(ExitError::usage)?;
            parse_hostfile(&text, DEFAULT_PORT)
                .with_context(|| format!("--hostfile {}", path.display()))
                .map_err(ExitError::usage)?
        }
        (None, None, Some(service)) => match (&args.pods, args.expect) {
            (Some(pattern), _) => pods(pattern, service)?,
            (None, Some(expect)) => {
                return Ok(RosterSource::Service { service: service.clone(), expect });
            }
            (None, None) => {
                return Err(ExitError::usage(anyhow!(
                    "--service {service} gives no order of nodes: add --pods PATTERN (such as railmesh-[0-3]) or --expect N"
                )));
            }
        },
        (None, None, None) => return Err(ExitError::usage(anyhow!("name the roster with --peers"))),
    };
    of_peers(args, peers).map(RosterSource::Known)
}

/// The roster of these peers, with the electors and the generation of the flags.
///
/// # Errors
/// Exit code 2 if the flags do not fit it.
pub(crate) fn of_peers(args: &AgentArgs, peers: Vec<Peer>) -> Result<Roster, ExitError> {
    Roster::new(peers, args.electors, Generation(args.new_generation)).map_err(ExitError::usage)
}

fn pods(pattern: &str, service: &str) -> Result<Vec<Peer>, ExitError> {
    let (service, port) = split_port(service);
    parse_pod_pattern(pattern, service, port).context("--pods").map_err(ExitError::usage)
}

/// Whom to ask for names.
///
/// # Errors
/// Exit code 2 if the system's configuration cannot be used.
pub(crate) fn resolver(server: Option<SocketAddr>) -> Result<Resolver, ExitError> {
    match server {
        Some(server) => Resolver::with_server(server, &[]),
        None => Resolver::system(),
    }
    .map_err(ExitError::usage)
}

/// `name` or `name:port`.
pub(crate) fn split_port(service: &str) -> (&str, u16) {
    match service.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => (host, port),
        Some((_, Err(_))) | None => (service, DEFAULT_PORT),
    }
}

/// This node's place: `--name`, else the host name (or its first label), else the entry with one of its addresses.
///
/// # Errors
/// Exit code 2 naming what was looked for.
pub(crate) fn own_place(
    roster: &Roster,
    name: Option<&NodeId>,
    hostname: &str,
    interfaces: &[Interface],
) -> Result<NodeIndex, ExitError> {
    if let Some(name) = name {
        return roster.index_of(name).ok_or_else(|| {
            ExitError::usage(anyhow!("--name {name} is not in the roster ({})", short_list(roster)))
        });
    }
    let short = hostname.split('.').next().unwrap_or(hostname);
    let by_name = [hostname, short]
        .iter()
        .filter_map(|name| NodeId::new(name).ok())
        .find_map(|name| roster.index_of(&name));
    let has = |peer: &Peer| {
        let address: Option<IpAddr> = peer.host.parse().ok();
        address.is_some_and(|address| interfaces.iter().any(|i| i.addr == address))
    };
    let by_address = || roster.peers.iter().position(has).map(|i| NodeIndex(i as u16));
    by_name.or_else(by_address).ok_or_else(|| {
        ExitError::usage(anyhow!(
            "this node is not in the roster ({}): its host name is {hostname}; say who it is with --name",
            short_list(roster)
        ))
    })
}

/// Where to listen: `--listen`; the roster's own address where it is a loopback one; else all addresses with the
/// roster's port (loopback without a key).
pub(crate) fn listen_address(
    flag: Option<SocketAddr>,
    roster: &Roster,
    me: NodeIndex,
    has_key: bool,
) -> SocketAddr {
    let own = &roster.peers[me.usize()];
    let literal: Option<IpAddr> = own.host.parse().ok();
    let default = match literal {
        Some(address) if address.is_loopback() => address,
        Some(_) | None if has_key => Ipv6Addr::UNSPECIFIED.into(),
        // Refused by the mesh with the remedy, since other nodes could not reach loopback.
        Some(address) => address,
        None => Ipv6Addr::UNSPECIFIED.into(),
    };
    flag.unwrap_or_else(|| SocketAddr::new(default, own.port))
}

fn short_list(roster: &Roster) -> String {
    let names: Vec<&str> = roster.peers.iter().take(NAMES_SHOWN).map(|peer| peer.node.as_str()).collect();
    let more = roster.peers.len().saturating_sub(NAMES_SHOWN);
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}

/// UDP port of an agent where the roster names none.
const DEFAULT_PORT: u16 = 7777;

/// Names of the roster in an error.
const NAMES_SHOWN: usize = 8;
