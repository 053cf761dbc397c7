//! One TCP connection of a cell, with a wait mode, and the two calls of the hot loops.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use bench_core::plan::WaitMode;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::Socket;

/// A connected stream.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Socket,
    local: SocketAddr,
    peer: SocketAddr,
    index: u16,
}

/// What happens to the end of a block that fills no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remainders {
    /// It waits for the next block (Nagle's rule, the kernel's default): in a bandwidth test one is always coming, and
    /// small segments between large ones cost what large ones do.
    Join,
    /// It is sent at once (TCP_NODELAY): in a latency test the peer waits for it.
    AtOnce,
}

/// What a receive brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// This many bytes, at least one.
    Bytes(usize),
    /// The peer sends no more.
    Closed,
    /// Nothing: for [`IDLE`] when blocking, at this instant when spinning.
    Idle,
}

/// What a send took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The kernel took this many bytes.
    Bytes(usize),
    /// It had no room: for [`IDLE`] when blocking, at this instant when spinning.
    Idle,
}

impl Stream {
    /// Takes a connected socket as stream number `index` of its cell.
    pub(super) fn new(socket: Socket, index: u16) -> io::Result<Self> {
        let address = |of: socket2::SockAddr| {
            of.as_socket().ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))
        };
        Ok(Self { local: address(socket.local_addr()?)?, peer: address(socket.peer_addr()?)?, socket, index })
    }

    /// Gives the socket the wait mode of the measurement. Buffer sizes stay the kernel's.
    pub(super) fn arm(&self, wait: WaitMode, remainders: Remainders) -> io::Result<()> {
        self.socket.set_tcp_nodelay(match remainders {
            Remainders::Join => false,
            Remainders::AtOnce => true,
        })?;
        match wait {
            WaitMode::Blocking => {
                self.socket.set_nonblocking(false)?;
                self.socket.set_read_timeout(Some(IDLE))?;
                self.socket.set_write_timeout(Some(IDLE))
            }
            WaitMode::Spinning => self.socket.set_nonblocking(true),
        }
    }

    /// Receives into `buffer`.
    #[inline]
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Result<Received, Errno> {
        match recv(&self.socket, buffer, RecvFlags::empty()) {
            Ok((0, _)) => Ok(Received::Closed),
            Ok((n, _)) => Ok(Received::Bytes(n)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Received::Idle),
            Err(errno) => Err(errno),
        }
    }

    /// Hands `data` to the kernel, as much as it takes.
    #[inline]
    pub(super) fn send(&self, data: &[u8]) -> Result<Sent, Errno> {
        match send(&self.socket, data, SendFlags::NOSIGNAL) {
            Ok(n) => Ok(Sent::Bytes(n)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Sent::Idle),
            Err(errno) => Err(errno),
        }
    }

    /// Says that no more will be sent. A connection that is gone already has nothing to be told.
    pub(super) fn finish(&self) {
        let _gone_already = self.socket.shutdown(Shutdown::Write);
    }

    /// The socket, for the handshake.
    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The address and port here.
    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The address and port there.
    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Its number in the cell, from 0.
    pub(super) fn index(&self) -> u16 {
        self.index
    }

    /// The congestion control that the kernel uses, such as `cubic`.
    pub(super) fn congestion_control(&self) -> Option<String> {
        let name = self.socket.tcp_congestion().ok()?;
        let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
        String::from_utf8(name).ok().filter(|name| !name.is_empty())
    }

    /// The maximum segment size in bytes.
    pub(super) fn mss(&self) -> Option<u32> {
        self.socket.tcp_mss().ok()
    }
}

/// How long a blocking call waits before it lets the loop look at its deadline and at [`crate::data::Stop`],
/// which promises 200 ms.
pub(super) const IDLE: Duration = Duration::from_millis(100);
