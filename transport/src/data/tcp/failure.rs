//! What a failed socket means: the addresses, the kernel's reason in words, and what to do.

use std::io;
use std::net::SocketAddr;

use bench_core::record::{Failure, FailureKind, Phase};
use bench_core::time::Mono;
use bench_core::units::format_duration;
use rustix::io::Errno;

use super::stream::Stream;
use crate::data::Timing;

/// A socket of `local` that could not be set up.
pub(super) fn setup(local: SocketAddr, error: &io::Error) -> Failure {
    let meaning = Meaning::of(error);
    Failure {
        kind: meaning.kind,
        phase: Phase::Prepare,
        detail: format!("cannot listen at {}: {}", local.ip(), meaning.text),
        remedy: meaning.remedy,
    }
}

/// A connection from `local` to `peer` that could not be made.
pub(super) fn connect(local: SocketAddr, peer: SocketAddr, error: &io::Error) -> Failure {
    let meaning = Meaning::of(error);
    Failure {
        kind: meaning.kind,
        phase: Phase::Connect,
        detail: format!("cannot connect {} to {peer}: {}", local.ip(), meaning.text),
        remedy: meaning.remedy,
    }
}

/// A connection that broke.
pub(super) fn broken(stream: &Stream, error: impl Into<io::Error>, phase: Phase) -> Failure {
    let meaning = Meaning::of(&error.into());
    Failure {
        kind: meaning.kind,
        phase,
        detail: format!("{} broke: {}", name(stream), meaning.text),
        remedy: meaning.remedy,
    }
}

/// A peer that closed its connection before the end.
pub(super) fn closed(stream: &Stream, timing: &Timing, now: Mono) -> Failure {
    Failure {
        kind: FailureKind::Crash,
        phase: timing.phase(now),
        detail: format!(
            "{} was closed by the peer, {} after the start of {}",
            name(stream),
            format_duration(now.since(timing.at)),
            format_duration(timing.traffic_end().since(timing.at))
        ),
        remedy: Some(DEAD_WORKER.to_owned()),
    }
}

/// A peer from which nothing came until the deadline.
pub(super) fn silent(stream: &Stream, awaited: &str, timing: &Timing, last: Mono) -> Failure {
    Failure {
        kind: FailureKind::Timeout,
        phase: timing.phase(last.min(timing.window_end())),
        detail: format!(
            "{}: {awaited} did not come, nothing moved for {}",
            name(stream),
            format_duration(timing.deadline().since(last))
        ),
        remedy: Some(
            "check link and switch port of this rail, and whether the peer's node still runs".to_owned(),
        ),
    }
}

/// `stream 0 from 10.0.0.1:4711 to 10.0.0.2:5001`.
fn name(stream: &Stream) -> String {
    format!("stream {} from {} to {}", stream.index(), stream.local(), stream.peer())
}

/// An errno in the words of this backend.
struct Meaning {
    kind: FailureKind,
    text: String,
    remedy: Option<String>,
}

impl Meaning {
    fn of(error: &io::Error) -> Self {
        let Some(errno) = Errno::from_io_error(error) else {
            return Self::plain(error.to_string());
        };
        let (kind, text, remedy) = match errno {
            Errno::ADDRNOTAVAIL => (
                FailureKind::Unsupported,
                "this node does not have the rail's address",
                "bring the interface up (`ip addr`) or correct the rails of this node",
            ),
            Errno::CONNREFUSED => (
                FailureKind::Crash,
                "nothing listens there",
                "the peer's worker has ended, or a firewall rejects the port",
            ),
            Errno::HOSTUNREACH => (
                FailureKind::Crash,
                "host unreachable: no neighbour answers, or a router says so",
                "check link and cabling of this rail, and that both ends are in one subnet or have a route",
            ),
            Errno::NETUNREACH => (
                FailureKind::Unsupported,
                "no route from this address",
                "add a route for this rail (`ip route get PEER from ADDRESS`)",
            ),
            Errno::TIMEDOUT => (
                FailureKind::Timeout,
                "the peer's kernel does not answer",
                "check link and switch port of this rail, and a firewall that drops",
            ),
            Errno::CONNRESET | Errno::PIPE => (FailureKind::Crash, "the peer's end was closed", DEAD_WORKER),
            Errno::NETDOWN => (
                FailureKind::Crash,
                "the interface is down",
                "bring it up (`ip link`) and look for link flaps",
            ),
            Errno::MFILE | Errno::NFILE => (
                FailureKind::Unsupported,
                "no file descriptor is left",
                "raise the limit of open files (`ulimit -n`) or use fewer streams",
            ),
            Errno::ACCESS | Errno::PERM => (
                FailureKind::Unsupported,
                "the kernel or a firewall forbids it",
                "look at the firewall and the security policy of this node",
            ),
            _ => return Self::plain(error.to_string()),
        };
        Self { kind, text: format!("{text} ({})", code(errno)), remedy: Some(remedy.to_owned()) }
    }

    fn plain(text: String) -> Self {
        Self { kind: FailureKind::Crash, text, remedy: None }
    }
}

/// The symbol and number of an errno that [`Meaning`] knows, as manual pages and search engines know it.
fn code(errno: Errno) -> String {
    let symbol = match errno {
        Errno::ADDRNOTAVAIL => "EADDRNOTAVAIL",
        Errno::CONNREFUSED => "ECONNREFUSED",
        Errno::HOSTUNREACH => "EHOSTUNREACH",
        Errno::NETUNREACH => "ENETUNREACH",
        Errno::TIMEDOUT => "ETIMEDOUT",
        Errno::CONNRESET => "ECONNRESET",
        Errno::PIPE => "EPIPE",
        Errno::NETDOWN => "ENETDOWN",
        Errno::MFILE => "EMFILE",
        Errno::NFILE => "ENFILE",
        Errno::ACCESS => "EACCES",
        Errno::PERM => "EPERM",
        _ => "errno",
    };
    format!("{symbol} {}", errno.raw_os_error())
}

/// What to do where the peer's kernel closed the connection.
const DEAD_WORKER: &str = "look for the end of the peer's worker: its agent reports exit code or signal";
