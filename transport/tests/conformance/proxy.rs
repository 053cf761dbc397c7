//! A hostile path between two ends: forwards a cell's streams until it does what a broken fabric does.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bench_core::message::EndpointInfo;

/// What goes wrong on the way from source to destination, after how many bytes of the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    /// One bit of this byte changes.
    Flip { at: u64 },
    /// Both connections are closed.
    Close { at: u64 },
    /// Nothing passes any more, in either direction; the connections stay.
    Stall { at: u64 },
}

/// A running proxy. Dropping it lets its threads end.
pub(crate) struct Proxy {
    info: EndpointInfo,
    ended: Arc<AtomicBool>,
}

impl Proxy {
    /// Stands in front of the destination at `target`.
    pub(crate) fn before(target: &EndpointInfo, trouble: Trouble) -> Self {
        let EndpointInfo::Tcp { addr, token } = *target else {
            panic!("a proxy needs a TCP destination");
        };
        let listener = TcpListener::bind("127.0.0.3:0").unwrap();
        let info = EndpointInfo::Tcp { addr: listener.local_addr().unwrap(), token };
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                forward(client, addr, trouble, &flag);
            }
        });
        Self { info, ended }
    }

    /// Where a source finds it.
    pub(crate) fn info(&self) -> &EndpointInfo {
        &self.info
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

fn forward(client: TcpStream, target: SocketAddr, trouble: Trouble, ended: &Arc<AtomicBool>) {
    let server = TcpStream::connect(target).unwrap();
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let stalled = Arc::new(AtomicBool::new(false));
    let back =
        (server.try_clone().unwrap(), client.try_clone().unwrap(), Arc::clone(&stalled), Arc::clone(ended));
    thread::spawn(move || {
        let (mut from, mut to, stalled, ended) = back;
        let mut buffer = vec![0; 1 << 16];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            hold_while(&stalled, &ended);
            if to.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
        hold_while(&stalled, &ended);
        let _ = to.shutdown(Shutdown::Write);
    });
    let ended = Arc::clone(ended);
    thread::spawn(move || trouble.pass(client, server, &stalled, &ended));
}

impl Trouble {
    fn pass(self, mut from: TcpStream, mut to: TcpStream, stalled: &AtomicBool, ended: &AtomicBool) {
        let mut buffer = vec![0; 1 << 16];
        let mut passed = 0;
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            let reached = |at: u64| (passed..passed + n as u64).contains(&(at + PREAMBLE));
            match self {
                Self::Flip { at } if reached(at) => buffer[(at + PREAMBLE - passed) as usize] ^= 0x40,
                Self::Close { at } if reached(at) => {
                    let _ = to.shutdown(Shutdown::Both);
                    let _ = from.shutdown(Shutdown::Both);
                    return;
                }
                Self::Stall { at } if reached(at) => {
                    stalled.store(true, Ordering::Relaxed);
                    hold_while(stalled, ended);
                    return;
                }
                Self::Flip { .. } | Self::Close { .. } | Self::Stall { .. } => {}
            }
            if to.write_all(&buffer[..n]).is_err() {
                break;
            }
            passed += n as u64;
        }
        let _ = to.shutdown(Shutdown::Write);
    }
}

fn hold_while(stalled: &AtomicBool, ended: &AtomicBool) {
    while stalled.load(Ordering::Relaxed) && !ended.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(10));
    }
}

/// Token and number that precede a stream's data.
const PREAMBLE: u64 = 18;
