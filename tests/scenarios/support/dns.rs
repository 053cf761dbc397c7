//! A name server on loopback that knows one name, whose addresses a scenario changes.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The server. Dropping it ends it.
pub(crate) struct Dns {
    address: SocketAddr,
    served: Arc<Mutex<Vec<Ipv4Addr>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Dns {
    /// A server that gives these addresses for every name.
    pub(crate) fn serving(addresses: &[Ipv4Addr]) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has free ports");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a valid time");
        let address = socket.local_addr().expect("a bound socket has an address");
        let served = Arc::new(Mutex::new(addresses.to_vec()));
        let stop = Arc::new(AtomicBool::new(false));
        let (answers, ended) = (Arc::clone(&served), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut query = [0; 1500];
            while !ended.load(Ordering::Relaxed) {
                if let Ok((length, from)) = socket.recv_from(&mut query) {
                    let addresses = answers.lock().expect("nothing panics while it is held").clone();
                    if let Some(reply) = reply_to(&query[..length], &addresses) {
                        // A resolver that is gone needs no answer.
                        let _: Result<_, _> = socket.send_to(&reply, from);
                    }
                }
            }
        });
        Self { address, served, stop, thread: Some(thread) }
    }

    /// Gives these addresses from now on.
    pub(crate) fn serve(&self, addresses: &[Ipv4Addr]) {
        *self.served.lock().expect("nothing panics while it is held") = addresses.to_vec();
    }

    /// For `--dns`.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It panicked if a query could not be read, which fails the scenario by itself.
            let _: Result<_, _> = thread.join();
        }
    }
}

/// The answer to a question (RFC 1035 section 4): all addresses for A, none for other types.
fn reply_to(query: &[u8], addresses: &[Ipv4Addr]) -> Option<Vec<u8>> {
    let name = query.get(HEADER_BYTES..)?.iter().position(|byte| *byte == 0)? + 1;
    let question = query.get(HEADER_BYTES..HEADER_BYTES + name + 4)?;
    let kind = u16::from_be_bytes([question[name], question[name + 1]]);
    let answers = if kind == TYPE_A { addresses } else { &[] };
    let mut reply = query[..2].to_vec();
    // A response, recursion desired and available, no error; one question.
    reply.extend([0x81, 0x80, 0, 1]);
    reply.extend((answers.len() as u16).to_be_bytes());
    reply.extend([0; 4]);
    reply.extend(question);
    for address in answers {
        // The name of the question, type A, class IN, 0 s to live, 4 bytes.
        reply.extend([0xc0, HEADER_BYTES as u8, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        reply.extend(address.octets());
    }
    Some(reply)
}

/// Bytes before the first question.
const HEADER_BYTES: usize = 12;

/// An IPv4 address record.
const TYPE_A: u16 = 1;
