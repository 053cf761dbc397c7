//! The source's side of connecting: every stream from the rail's address, and the wait for the destination's word.

use std::io;
use std::net::{IpAddr, SocketAddr};

use bench_core::message::CellTask;
use bench_core::record::{Failure, FailureKind, Phase};
use bench_core::time::Mono;
use bench_core::units::format_duration;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::{Domain, Protocol, Socket, Type};

use super::listen::{ACK, PREAMBLE, preamble};
use super::stream::{IDLE, Stream};
use super::{Token, failure, streams};
use crate::clock;
use crate::data::{Stop, cancelled};

/// Connects every stream of `task` to `peer` and returns when the destination has them all.
pub(super) fn dial(
    task: &CellTask,
    peer: SocketAddr,
    token: &Token,
    deadline: Mono,
    stop: &Stop,
) -> Result<Vec<Stream>, Failure> {
    let attempt = Attempt { task, local: task.address()?, peer, deadline, stop };
    let mut connected = Vec::new();
    for index in 0..streams(&task.case) {
        connected.push(attempt.stream(token, index)?);
    }
    for stream in &connected {
        attempt.wait_for_word(stream)?;
    }
    Ok(connected)
}

/// What every step of one dial needs.
struct Attempt<'a> {
    task: &'a CellTask,
    local: IpAddr,
    peer: SocketAddr,
    deadline: Mono,
    stop: &'a Stop,
}

impl Attempt<'_> {
    fn stream(&self, token: &Token, index: u16) -> Result<Stream, Failure> {
        let local = SocketAddr::new(self.local, 0);
        let failed = |error: io::Error| failure::connect(local, self.peer, &error);
        let socket = begin(local, self.peer).map_err(failed)?;
        self.wait_for(&socket, PollFlags::OUT, "no answer to the connection request")?;
        if let Some(error) = socket.take_error().map_err(failed)? {
            return Err(failed(error));
        }
        let stream = Stream::new(socket, index).map_err(failed)?;
        let hello = preamble(token, index);
        match send(stream.socket(), &hello, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(PREAMBLE) => Ok(stream),
            Ok(_) => Err(failed(io::Error::from(Errno::NOBUFS))),
            Err(errno) => Err(failed(errno.into())),
        }
    }

    fn wait_for_word(&self, stream: &Stream) -> Result<(), Failure> {
        self.wait_for(
            stream.socket(),
            PollFlags::IN,
            "connected, but the destination did not say that it is armed",
        )?;
        let mut word = [0];
        match recv(stream.socket(), &mut word[..], RecvFlags::DONTWAIT) {
            Ok((1, _)) if word == [ACK] => Ok(()),
            Ok(_) => Err(failure::broken(stream, Errno::CONNRESET, Phase::Connect)),
            Err(errno) => Err(failure::broken(stream, errno, Phase::Connect)),
        }
    }

    fn wait_for(&self, socket: &Socket, what: PollFlags, otherwise: &str) -> Result<(), Failure> {
        loop {
            if self.stop.is_set() {
                return Err(cancelled(Phase::Connect));
            }
            let now = clock::now();
            if now >= self.deadline {
                return Err(self.timeout(otherwise));
            }
            let time = self.deadline.since(now).min(IDLE);
            let timeout = time.try_into().expect("a wait of at most 100 ms fits a timespec");
            match poll(&mut [PollFd::new(socket, what)], Some(&timeout)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(errno) => {
                    let local = SocketAddr::new(self.local, 0);
                    return Err(failure::connect(local, self.peer, &errno.into()));
                }
            }
        }
    }

    fn timeout(&self, what: &str) -> Failure {
        Failure {
            kind: FailureKind::Timeout,
            phase: Phase::Connect,
            detail: format!(
                "cannot connect {} to {} within {}: {what}",
                self.local,
                self.peer,
                format_duration(self.task.connect_timeout)
            ),
            remedy: Some(
                "check link and switch port of this rail, and a firewall that drops (`ping -I ADDRESS PEER`)"
                    .to_owned(),
            ),
        }
    }
}

/// Starts to connect from `local`, on a port that the kernel chooses.
fn begin(local: SocketAddr, peer: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.bind(&local.into())?;
    match socket.connect(&peer.into()) {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::INPROGRESS) => Err(error),
        Ok(()) | Err(_) => Ok(socket),
    }
}
