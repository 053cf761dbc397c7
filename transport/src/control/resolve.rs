//! Names to addresses: literals, the hosts file, then DNS with the search list of resolv.conf.
//!
//! DNS is asked directly (A, AAAA, SRV; TCP when an answer is too long for UDP) and not through the C library, whose
//! name service modules a static executable cannot load. Nothing is cached: names are asked for while a mesh comes up,
//! when an answer of a second ago may be wrong.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Hosts, TokioResolver};
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout};

/// Asks for names.
#[derive(Clone)]
pub struct Resolver {
    dns: TokioResolver,
    /// Whom it asks, for messages.
    servers: String,
}

/// Where a service is, out of an SRV record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceTarget {
    /// The host that serves, without a final dot.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl Resolver {
    /// As /etc/resolv.conf says. Without a readable one, literals and the hosts file still work.
    ///
    /// # Errors
    /// [`ResolveError::Configuration`] if what it says cannot be used.
    pub fn system() -> Result<Self, ResolveError> {
        let (config, options) = hickory_resolver::system_conf::read_system_conf()
            .unwrap_or_else(|_| (empty_config(), ResolverOpts::default()));
        Self::build(config, options)
    }

    /// Asks one name server, with `search` as the search list: for tests, and for hosts whose resolv.conf is wrong.
    ///
    /// # Errors
    /// [`ResolveError::Configuration`] if an entry of the search list is no name.
    pub fn with_server(server: SocketAddr, search: &[&str]) -> Result<Self, ResolveError> {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
            connection.port = server.port();
            connection
        });
        let mut config = empty_config();
        config.add_name_server(NameServerConfig::new(server.ip(), true, connections.into()));
        for entry in search {
            config.add_search(Name::from_utf8(entry).map_err(configuration)?);
        }
        Self::build(config, ResolverOpts::default())
    }

    /// The addresses of a host, sorted and without repetition; never empty.
    ///
    /// # Errors
    /// [`ResolveError`].
    pub async fn lookup(&self, host: &str) -> Result<Vec<IpAddr>, ResolveError> {
        if let Some(addresses) = known(host) {
            return Ok(addresses);
        }
        match self.dns.lookup_ip(host).await {
            Ok(found) => {
                let addresses: BTreeSet<IpAddr> = found.iter().collect();
                match addresses.is_empty() {
                    true => Err(self.not_found(host, "it has no address")),
                    false => Ok(addresses.into_iter().collect()),
                }
            }
            Err(error) => Err(self.explain(host, &error)),
        }
    }

    /// The targets of a service name such as `_quic._udp.mesh`, sorted and without repetition; never empty.
    ///
    /// # Errors
    /// [`ResolveError`].
    pub async fn lookup_service(&self, name: &str) -> Result<Vec<ServiceTarget>, ResolveError> {
        let found =
            self.dns.lookup(name, RecordType::SRV).await.map_err(|error| self.explain(name, &error))?;
        let targets: BTreeSet<ServiceTarget> = found
            .answers()
            .iter()
            .filter_map(|record| match &record.data {
                RData::SRV(srv) => Some(ServiceTarget {
                    host: srv.target.to_utf8().trim_end_matches('.').to_owned(),
                    port: srv.port,
                }),
                _ => None,
            })
            .collect();
        match targets.is_empty() {
            true => Err(self.not_found(name, "it has no SRV record")),
            false => Ok(targets.into_iter().collect()),
        }
    }

    /// Asks again every `every` until there is an answer or `deadline` has passed: a Service whose pods are not up yet
    /// is normal.
    ///
    /// # Errors
    /// The last error, once the deadline has passed.
    pub async fn lookup_until(
        &self,
        host: &str,
        deadline: Duration,
        every: Duration,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        let end = Instant::now() + deadline;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let error = match timeout(left, self.lookup(host)).await {
                Ok(Ok(addresses)) => return Ok(addresses),
                Ok(Err(error)) => error,
                Err(_) => {
                    return Err(ResolveError::Silent {
                        host: host.to_owned(),
                        servers: self.servers.clone(),
                    });
                }
            };
            if Instant::now() + every >= end {
                return Err(error);
            }
            sleep(every).await;
        }
    }

    fn build(config: ResolverConfig, mut options: ResolverOpts) -> Result<Self, ResolveError> {
        options.cache_size = 0;
        let servers: BTreeSet<String> = config
            .name_servers()
            .iter()
            .map(|server| match server.connections.first() {
                Some(connection) => SocketAddr::new(server.ip, connection.port).to_string(),
                None => server.ip.to_string(),
            })
            .collect();
        let servers = match servers.is_empty() {
            true => "no name server (see /etc/resolv.conf)".to_owned(),
            false => servers.into_iter().collect::<Vec<_>>().join(", "),
        };
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options;
        let dns = builder.build().map_err(configuration)?;
        Ok(Self { dns, servers })
    }

    fn explain(&self, host: &str, error: &NetError) -> ResolveError {
        match error {
            NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
                ResponseCode::NXDomain => self.not_found(host, "no such name (NXDOMAIN)"),
                ResponseCode::NoError => self.not_found(host, "the name has no such record"),
                code => self.failed(host, code.to_string()),
            },
            NetError::Timeout => {
                ResolveError::Silent { host: host.to_owned(), servers: self.servers.clone() }
            }
            other => self.failed(host, other.to_string()),
        }
    }

    fn not_found(&self, host: &str, reason: &str) -> ResolveError {
        ResolveError::NotFound {
            host: host.to_owned(),
            servers: self.servers.clone(),
            reason: reason.to_owned(),
        }
    }

    fn failed(&self, host: &str, reason: String) -> ResolveError {
        ResolveError::Failed { host: host.to_owned(), servers: self.servers.clone(), reason }
    }
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver").field("servers", &self.servers).finish_non_exhaustive()
    }
}

/// Why a name has no addresses.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResolveError {
    /// The name server says that there is none.
    #[error(
        "{host} is not found, {reason}, according to {servers}: is it spelled right, and are its pods up?"
    )]
    NotFound {
        /// The name.
        host: String,
        /// Who was asked.
        servers: String,
        /// What was said.
        reason: String,
    },
    /// No name server answers.
    #[error(
        "no answer about {host} from {servers}: is the name server up, and does a firewall stop UDP and TCP port 53?"
    )]
    Silent {
        /// The name.
        host: String,
        /// Who was asked.
        servers: String,
    },
    /// The name server cannot answer.
    #[error("{host} cannot be looked up at {servers}: {reason}")]
    Failed {
        /// The name.
        host: String,
        /// Who was asked.
        servers: String,
        /// Why.
        reason: String,
    },
    /// The resolver cannot be set up.
    #[error("the name resolver cannot be set up: {reason}: see /etc/resolv.conf")]
    Configuration {
        /// Why.
        reason: String,
    },
}

/// What needs no name server: a literal (an IPv6 one may stand in brackets), localhost, a line of the hosts file.
fn known(host: &str) -> Option<Vec<IpAddr>> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = bare.parse() {
        return Some(vec![address]);
    }
    if host.trim_end_matches('.').eq_ignore_ascii_case("localhost") {
        return Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    in_hosts_file(host)
}

/// Read anew each time, and before DNS is asked for either family: a host that the file knows must not wait for a
/// name server that does not answer.
fn in_hosts_file(host: &str) -> Option<Vec<IpAddr>> {
    let hosts = Hosts::from_system().ok()?;
    let name = Name::from_utf8(host).ok()?;
    let addresses: BTreeSet<IpAddr> = [RecordType::A, RecordType::AAAA]
        .into_iter()
        .filter_map(|kind| hosts.lookup_static_host(&Query::query(name.clone(), kind)))
        .flat_map(|lookup| {
            let found: Vec<IpAddr> = lookup.answers().iter().filter_map(|r| r.data.ip_addr()).collect();
            found
        })
        .collect();
    match addresses.is_empty() {
        true => None,
        false => Some(addresses.into_iter().collect()),
    }
}

fn empty_config() -> ResolverConfig {
    ResolverConfig::from_parts(None, Vec::new(), Vec::new())
}

fn configuration(error: impl std::fmt::Display) -> ResolveError {
    ResolveError::Configuration { reason: error.to_string() }
}

#[cfg(test)]
mod tests;
