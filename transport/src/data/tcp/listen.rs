//! The destination's listener: takes the streams of its cell and drops strangers.
//!
//! A stream proves itself by token and number. Whoever connects without them, or says nothing, is dropped after
//! [`SILENCE`] and never holds up the others: every connection is read as its bytes come.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bench_core::record::{Failure, FailureKind, Phase};
use bench_core::time::Mono;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::rand::{GetRandomFlags, getrandom};
use socket2::{Domain, Protocol, Socket, Type};

use super::stream::{IDLE, Stream};
use super::{Token, failure};
use crate::clock;
use crate::data::{Stop, cancelled};

/// A listening socket with the token of its attempt.
#[derive(Debug)]
pub(super) struct Listener {
    socket: Socket,
    addr: SocketAddr,
    token: Token,
}

/// A connection that has not proved itself yet.
struct Visitor {
    socket: Socket,
    preamble: [u8; PREAMBLE],
    got: usize,
    expires: Mono,
}

/// What a visitor turned out to be.
enum Verdict {
    /// Not all of its preamble is here.
    Undecided,
    /// A stream of this cell, by number.
    Stream(u16),
    /// Wrong token, closed or broken.
    Stranger,
}

impl Listener {
    /// Listens on a free port of `ip` for `streams` connections.
    pub(super) fn bind(ip: IpAddr, streams: u16) -> Result<Self, Failure> {
        let wanted = SocketAddr::new(ip, 0);
        let listen = || -> io::Result<Self> {
            let socket = Socket::new(Domain::for_address(wanted), Type::STREAM, Some(Protocol::TCP))?;
            socket.set_reuse_address(true)?;
            socket.set_nonblocking(true)?;
            socket.bind(&wanted.into())?;
            socket.listen(i32::from(streams) + STRANGERS_IN_QUEUE)?;
            let addr = socket.local_addr()?.as_socket().ok_or_else(|| io::Error::from(Errno::AFNOSUPPORT))?;
            let mut token = Token::default();
            getrandom(&mut token, GetRandomFlags::empty())?;
            Ok(Self { socket, addr, token })
        };
        listen().map_err(|error| failure::setup(wanted, &error))
    }

    /// Where it listens.
    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What a stream must begin with.
    pub(super) fn token(&self) -> &Token {
        &self.token
    }

    /// Accepts until every stream is there, then tells each that both ends are armed.
    pub(super) fn accept(&self, streams: u16, deadline: Mono, stop: &Stop) -> Result<Vec<Stream>, Failure> {
        let mut slots: Vec<Option<Stream>> = (0..streams).map(|_| None).collect();
        let mut visitors: Vec<Visitor> = Vec::new();
        let mut strangers = 0;
        while slots.iter().any(Option::is_none) {
            if stop.is_set() {
                return Err(cancelled(Phase::Connect));
            }
            let now = clock::now();
            if now >= deadline {
                return Err(self.incomplete(&slots, strangers));
            }
            self.wait(&visitors, deadline.since(now).min(IDLE));
            self.admit(&mut visitors);
            let now = clock::now();
            for mut visitor in std::mem::take(&mut visitors) {
                match visitor.read(&self.token) {
                    Verdict::Undecided if now < visitor.expires => visitors.push(visitor),
                    Verdict::Undecided | Verdict::Stranger => strangers += 1,
                    Verdict::Stream(index) => match slots.get_mut(usize::from(index)) {
                        Some(slot @ None) => *slot = Stream::new(visitor.socket, index).ok(),
                        Some(Some(_)) | None => strangers += 1,
                    },
                }
            }
        }
        let streams: Vec<Stream> = slots.into_iter().flatten().collect();
        for stream in &streams {
            acknowledge(stream)?;
        }
        Ok(streams)
    }

    /// Sleeps until a connection or a byte comes, or `time` is over.
    fn wait(&self, visitors: &[Visitor], time: Duration) {
        let mut fds: Vec<PollFd<'_>> = std::iter::once(&self.socket)
            .chain(visitors.iter().map(|visitor| &visitor.socket))
            .map(|socket| PollFd::new(socket, PollFlags::IN))
            .collect();
        let timeout = time.try_into().expect("a wait of at most 100 ms fits a timespec");
        // An interrupted wait is a short one: the caller looks at everything again.
        let _ready = poll(&mut fds, Some(&timeout));
    }

    fn admit(&self, visitors: &mut Vec<Visitor>) {
        while let Ok((socket, _)) = self.socket.accept() {
            if socket.set_nonblocking(true).is_err() {
                continue;
            }
            if visitors.len() >= MOST_VISITORS {
                visitors.remove(0);
            }
            visitors.push(Visitor {
                socket,
                preamble: [0; PREAMBLE],
                got: 0,
                expires: clock::now().after(SILENCE),
            });
        }
    }

    fn incomplete(&self, slots: &[Option<Stream>], strangers: u32) -> Failure {
        let arrived = slots.iter().flatten().count();
        let dropped = match strangers {
            0 => String::new(),
            n => format!("; {n} connections without this cell's token were dropped"),
        };
        Failure {
            kind: FailureKind::Timeout,
            phase: Phase::Connect,
            detail: format!("{arrived} of {} streams reached {} in time{dropped}", slots.len(), self.addr),
            remedy: Some("look at the source's end of this cell; a firewall may drop the port".to_owned()),
        }
    }
}

impl Visitor {
    fn read(&mut self, token: &Token) -> Verdict {
        while self.got < PREAMBLE {
            match recv(&self.socket, &mut self.preamble[self.got..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Verdict::Stranger,
                Ok((n, _)) => self.got += n,
                Err(Errno::AGAIN | Errno::INTR) => return Verdict::Undecided,
                Err(_) => return Verdict::Stranger,
            }
        }
        let (shown, index) = self.preamble.split_at(TOKEN_BYTES);
        if shown == token {
            Verdict::Stream(u16::from_be_bytes([index[0], index[1]]))
        } else {
            Verdict::Stranger
        }
    }
}

/// What a stream begins with: the token, then its number.
pub(super) fn preamble(token: &Token, index: u16) -> [u8; PREAMBLE] {
    let mut bytes = [0; PREAMBLE];
    bytes[..TOKEN_BYTES].copy_from_slice(token);
    bytes[TOKEN_BYTES..].copy_from_slice(&index.to_be_bytes());
    bytes
}

fn acknowledge(stream: &Stream) -> Result<(), Failure> {
    send(stream.socket(), &[ACK], SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
        .map(drop)
        .map_err(|errno| failure::broken(stream, errno, Phase::Connect))
}

/// The byte by which a destination says that all streams of the cell are there.
pub(super) const ACK: u8 = 0xa5;
/// Bytes of a token.
const TOKEN_BYTES: usize = size_of::<Token>();
/// Bytes of a preamble: token and number.
pub(super) const PREAMBLE: usize = TOKEN_BYTES + size_of::<u16>();
/// How long a connection may take to show its token: a source sends it at once, so five retransmission timeouts of
/// Linux (TCP_RTO_MIN 200 ms).
const SILENCE: Duration = Duration::from_secs(1);
/// Undecided connections kept; above, the oldest is dropped. Bounds descriptors against a port scanner.
const MOST_VISITORS: usize = 256;
/// Room in the kernel's queue beyond the cell's own streams.
const STRANGERS_IN_QUEUE: i32 = 16;
