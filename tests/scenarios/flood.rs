//! Strangers that throw packets at an agent cost it no memory and do not keep it from answering.
//!
//! Proof, because the packets are those that cost a QUIC endpoint something: noise that must be looked at, first
//! packets of handshakes that never go on (each opens a connection that the agent has to give up by itself), and
//! handshakes that go on without a certificate. The agent's own counters are the kernel's.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use quinn::crypto::rustls::QuicClientConfig;
use railmesh::build_id::build_hash;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use crate::support::mesh::MeshSpec;
use crate::support::process::resident;
use crate::support::site::Site;
use crate::support::waiting::PATIENCE;

#[test]
fn noise_and_half_open_handshakes_cost_an_agent_no_memory_and_it_still_answers() {
    let mut mesh = MeshSpec::on(Site::loopback(1, 1)).start();
    let (agent, target) = (mesh.agent(1).pid(), mesh.site().node(1).control);
    let before = resident(agent);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut sizes = Vec::new();
    runtime.block_on(handshakes_without_certificate(target));
    sizes.push(resident(agent));
    throw_noise(target);
    sizes.push(resident(agent));
    let _open = runtime.block_on(half_open(target));
    sizes.push(resident(agent));
    mesh.run(&["status"]).exits(0);
    mesh.agent(1).await_line("shows no certificate", PATIENCE);
    mesh.agent(1).await_line("did not finish it in time", PATIENCE);
    sizes.push(resident(agent));
    let most = sizes.iter().max().expect("four were taken");
    assert!(most.saturating_sub(before) < MOST_GROWTH, "the agent grew from {before} bytes to {sizes:?}");
}

/// Datagrams of every length with random contents.
fn throw_noise(target: SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..NOISE {
        let length = random.next() as usize % LONGEST_DATAGRAM;
        let datagram: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        // A full queue of the receiver drops it: the rest is enough.
        let _: Result<_, _> = socket.send_to(&datagram, target);
    }
}

/// First packets of handshakes as quinn makes them, each sent from a socket whose owner never reads an answer.
/// Returns the sockets: closed ones would tell the agent that nobody is there.
async fn half_open(target: SocketAddr) -> Vec<UdpSocket> {
    let sink = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("loopback has free ports");
    let address = sink.local_addr().expect("a bound socket has an address");
    let endpoint = endpoint();
    let (mut sockets, mut attempts) = (Vec::new(), Vec::new());
    let mut packet = [0; 2048];
    while sockets.len() < HALF_OPEN {
        // Kept: one that is given up would send its farewell to the same place.
        attempts.push(endpoint.connect(address, "railmesh").expect("an attempt"));
        let (length, _) = sink.recv_from(&mut packet).await.expect("quinn sends its first packet");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
        socket.send_to(&packet[..length], target).expect("loopback takes it");
        sockets.push(socket);
    }
    sockets
}

/// Whole handshakes of a client that has nothing to show: each is told why it ends.
async fn handshakes_without_certificate(target: SocketAddr) {
    let endpoint = endpoint();
    for _ in 0..BARE {
        let connecting = endpoint.connect(target, "railmesh").expect("an attempt");
        // A TLS 1.3 client can be connected before the server has seen that there is no certificate.
        let error = match connecting.await {
            Ok(connection) => connection.closed().await,
            Err(error) => error,
        };
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}

/// A client of the right build that trusts everybody and has no certificate.
fn endpoint() -> quinn::Endpoint {
    let provider = Arc::new(ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring has TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Credulous(provider)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![format!("railmesh/{}", build_hash()).into_bytes()];
    let config = QuicClientConfig::try_from(tls).expect("TLS 1.3 is there");
    let mut endpoint =
        quinn::Endpoint::client("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(config)));
    endpoint
}

/// Believes every certificate: a stranger does not know the mesh's authority.
#[derive(Debug)]
struct Credulous(Arc<CryptoProvider>);

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Marsaglia's xorshift64: the same noise in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Datagrams of noise.
const NOISE: usize = 10_000;

/// Bytes of the longest: what a path of Ethernet carries.
const LONGEST_DATAGRAM: usize = 1472;

/// Handshakes that never go on: several times the agent's limit of 64 at once.
const HALF_OPEN: usize = 300;

/// Handshakes without a certificate.
const BARE: usize = 30;

/// Bytes that an agent may grow under all this.
const MOST_GROWTH: u64 = 32 << 20;
