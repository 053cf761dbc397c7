//! `--service NAME --expect N`: the shell around [`Confirming`], which asks DNS and starts and stops the agent.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::anyhow;
use bench_core::roster::Peer;
use tokio::time::{Instant, sleep, timeout};

use super::agent::{Launched, launch};
use crate::cli::args::AgentArgs;
use crate::cli::exit::ExitError;
use crate::cli::roster;
use crate::confirm::{Act, Confirming};
use crate::electors::Quorum;
use crate::inventory::{live_interfaces, read_host};

/// Starts the agent with a set of addresses that all agents have confirmed.
///
/// # Errors
/// Exit code 3 if there is no such set within the join timeout, with what was seen; 2 for what cannot become right.
pub(super) async fn confirmed(args: &AgentArgs, service: &str, expect: usize) -> Result<Launched, ExitError> {
    let (host, port) = roster::split_port(service);
    let resolver = roster::resolver(args.dns)?;
    let deadline = Instant::now() + args.join_timeout;
    let mut confirming = Confirming::new(port, expect);
    let mut launched = None;
    let mut trouble = "this node has no agent yet".to_owned();
    loop {
        let seen = match timeout(LOOKUP_LIMIT, resolver.lookup(host)).await {
            Ok(seen) => seen.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer about {host} within {LOOKUP_LIMIT:?}")),
        };
        // Nothing is awaited between this look and what follows, so nothing can begin meanwhile.
        match &launched {
            Some(Launched::Up(up)) if up.agent.has_begun() => confirming.begun(),
            Some(Launched::Up(up)) => trouble = up.agent.missing().join(", "),
            Some(Launched::Ended(_)) | None => {}
        }
        if confirming.is_confirmed()
            && let Some(launched) = launched.take()
        {
            tracing::info!(nodes = expect, "every node has confirmed the roster");
            return Ok(launched);
        }
        match confirming.saw(seen).map_err(ExitError::usage)? {
            Act::Stay => {}
            Act::Stop => stop(launched.take()).await,
            Act::Start(peers) => {
                stop(launched.take()).await;
                tracing::info!(
                    nodes = peers.len(),
                    "found as many addresses as expected; the others must confirm them"
                );
                match start(args, peers).await? {
                    Ok(Launched::Ended(exit)) => return Ok(Launched::Ended(exit)),
                    Ok(up) => launched = Some(up),
                    Err(reason) => trouble = reason,
                }
            }
        }
        if Instant::now() >= deadline {
            stop(launched).await;
            return Err(ExitError::not_measured(anyhow!(
                "{} (waited {})",
                confirming.failure(host, &trouble),
                bench_core::units::format_duration(args.join_timeout)
            )));
        }
        sleep(ASK_EVERY).await;
    }
}

/// Starts the agent of this set; `Err` with the reason if this node is not in it, which may pass.
async fn start(args: &AgentArgs, peers: Vec<Peer>) -> Result<Result<Launched, String>, ExitError> {
    let roster = roster::of_peers(args, peers)?;
    let host = read_host(std::path::Path::new("/"));
    let interfaces = live_interfaces().map_err(ExitError::not_measured)?;
    let me = match roster::own_place(&roster, args.name.as_ref(), &host.hostname, &interfaces) {
        Ok(me) => me,
        Err(error) => return Ok(Err(error.to_string())),
    };
    await_free(roster::listen_address(args.listen, &roster, me, args.key.is_some())).await;
    launch(args, roster, Quorum::Everybody).map(Ok)
}

/// Waits until an agent that was stopped here has let go of its port: its last tries to reach others hold it. Whoever
/// else holds it is named when the agent starts.
async fn await_free(listen: SocketAddr) {
    let begun = Instant::now();
    while UdpSocket::bind(listen).is_err() && begun.elapsed() < CLOSING_LIMIT {
        sleep(CLOSING_PAUSE).await;
    }
}

async fn stop(launched: Option<Launched>) {
    match launched {
        Some(Launched::Up(up)) => up.agent.shutdown().await,
        Some(Launched::Ended(_)) | None => {}
    }
}

/// Pause between two questions to DNS.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// How long DNS may take for one answer: the resolver asks each server anew after 5 s.
const LOOKUP_LIMIT: Duration = Duration::from_secs(6);

/// How long an agent that was stopped may hold its port: QUIC waits three probe times-out, 3 s where nobody answered.
const CLOSING_LIMIT: Duration = Duration::from_secs(10);

/// Pause between two tries.
const CLOSING_PAUSE: Duration = Duration::from_millis(100);
