//! Lists of peers as people and launchers write them.

use std::net::{IpAddr, Ipv6Addr};

use super::expand::expand;
use super::{MAX_NODES, Peer, RosterError, check_peers};

/// Reads peers separated by commas or white space: `gpu-[001-064]:7777`, `n[1-3,7]`, `10.0.0.[1-4]`, `[fd00::1]:7777`,
/// and `name=host:port` where a node is not named as its host. Ranges may stand in both: `n[1-4]=10.0.0.[11-14]`.
///
/// A peer without a port has `default_port`. A range keeps the zero padding of its first number.
///
/// # Errors
/// [`RosterError`] for anything else, for a name or an address that occurs twice, and for more than 4,096 peers.
pub fn parse_peers(text: &str, default_port: u16) -> Result<Vec<Peer>, RosterError> {
    let mut peers = Vec::new();
    for item in items(text) {
        add(&mut peers, item, default_port)?;
    }
    check_peers(&peers)?;
    Ok(peers)
}

/// Reads a hostfile: one peer a line in the form of [`parse_peers`], comments from `#` on. Words after the peer such as
/// `slots=8` are MPI's and ignored.
///
/// # Errors
/// As [`parse_peers`], with the line.
pub fn parse_hostfile(text: &str, default_port: u16) -> Result<Vec<Peer>, RosterError> {
    let mut peers = Vec::new();
    for (position, line) in text.lines().enumerate() {
        let content = line.split_once('#').map_or(line, |(before, _)| before);
        add_line(&mut peers, content, default_port)
            .map_err(|source| RosterError::Line { line: position + 1, source: Box::new(source) })?;
    }
    check_peers(&peers)?;
    Ok(peers)
}

/// The peers of a StatefulSet behind a headless Service: pod `railmesh-2` of Service `mesh` is reached as
/// `railmesh-2.mesh`, the DNS name that Kubernetes gives it, and is named `railmesh-2`.
///
/// # Errors
/// As [`parse_peers`].
pub fn parse_pod_pattern(pattern: &str, service: &str, port: u16) -> Result<Vec<Peer>, RosterError> {
    checked_host(service)?;
    let mut peers = Vec::new();
    for item in items(pattern) {
        for pod in expand(item)? {
            let host = checked_host(&format!("{pod}.{service}"))?;
            push(&mut peers, Peer::new(&pod, host, port)?)?;
        }
    }
    check_peers(&peers)?;
    Ok(peers)
}

/// The items of a list: separated by commas or white space outside brackets.
fn items(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.split(move |c: char| {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            _ => {}
        }
        !inside && (c == ',' || c.is_whitespace())
    })
    .filter(|item| !item.is_empty())
}

fn add_line(peers: &mut Vec<Peer>, line: &str, default_port: u16) -> Result<(), RosterError> {
    let mut words = line.split_whitespace();
    let Some(peer) = words.next() else {
        return Ok(());
    };
    if let Some(word) = words.find(|word| !word.contains('=')) {
        return Err(RosterError::Word { word: word.to_owned() });
    }
    add(peers, peer, default_port)
}

/// Adds what one item stands for.
fn add(peers: &mut Vec<Peer>, item: &str, default_port: u16) -> Result<(), RosterError> {
    let (names, address) = match item.split_once('=') {
        None => (None, item),
        Some((names, address)) => (Some(names), address),
    };
    let (host, port) = split_port(address, item)?;
    let port = port.unwrap_or(default_port);
    let hosts = match host {
        Host::Address(address) => vec![address.to_string()],
        Host::Pattern(pattern) => expand(pattern)?,
    };
    let names = match names {
        None => hosts.clone(),
        Some(pattern) => expand(pattern)?,
    };
    if names.len() != hosts.len() {
        return Err(RosterError::Unequal { peer: item.to_owned(), names: names.len(), hosts: hosts.len() });
    }
    for (name, host) in names.iter().zip(hosts) {
        let host = checked_host(&host)?;
        push(peers, Peer::new(name, host, port)?)?;
    }
    Ok(())
}

/// Adds a peer unless the list is full, so that a long text is refused as soon as it is too long.
fn push(peers: &mut Vec<Peer>, peer: Peer) -> Result<(), RosterError> {
    if peers.len() == MAX_NODES {
        return Err(RosterError::TooMany { max: MAX_NODES });
    }
    peers.push(peer);
    Ok(())
}

/// The host of a peer as written.
enum Host<'a> {
    /// An IPv6 address, whose colons and brackets are its own.
    Address(Ipv6Addr),
    /// A name or IPv4 address, with or without ranges.
    Pattern(&'a str),
}

/// Parts `address`, which is that of the peer `item`, into host and port.
fn split_port<'a>(address: &'a str, item: &str) -> Result<(Host<'a>, Option<u16>), RosterError> {
    if let Ok(bare) = address.parse() {
        return Ok((Host::Address(bare), None));
    }
    if let Some((inside, tail)) = address.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && let Ok(bracketed) = inside.parse()
    {
        return match tail.strip_prefix(':') {
            Some(port) => Ok((Host::Address(bracketed), Some(parse_port(port, item)?))),
            None if tail.is_empty() => Ok((Host::Address(bracketed), None)),
            None => Err(RosterError::Host { host: address.to_owned() }),
        };
    }
    match address.rsplit_once(':') {
        None => Ok((Host::Pattern(address), None)),
        Some((host, _)) if host.contains(':') => Err(RosterError::Host { host: address.to_owned() }),
        Some((host, port)) => Ok((Host::Pattern(host), Some(parse_port(port, item)?))),
    }
}

fn parse_port(text: &str, item: &str) -> Result<u16, RosterError> {
    match text.parse() {
        Ok(port) if port > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(port),
        Ok(_) | Err(_) => Err(RosterError::Port { port: text.to_owned(), peer: item.to_owned() }),
    }
}

/// The host if it is an address or has the form of a host name.
fn checked_host(host: &str) -> Result<String, RosterError> {
    let is_name = host.len() <= MAX_HOST_BYTES
        && host.strip_suffix('.').unwrap_or(host).split('.').all(|label| {
            (1..=MAX_LABEL_BYTES).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        });
    // What consists of numbers only, as 10.0.0.300 does, was meant as an address.
    let numeric = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if host.parse::<IpAddr>().is_ok() || is_name && !numeric {
        Ok(host.to_owned())
    } else {
        Err(RosterError::Host { host: host.to_owned() })
    }
}

/// Longest host name in bytes (RFC 1035 section 2.3.4, without the root's empty label and the length bytes).
pub(super) const MAX_HOST_BYTES: usize = 253;

/// Longest label of a host name in bytes (RFC 1035 section 2.3.4).
const MAX_LABEL_BYTES: usize = 63;
