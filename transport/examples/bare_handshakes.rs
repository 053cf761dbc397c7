//! What process starts and mutual-TLS handshakes cost without a product around them: the yardstick of the start of a mesh.
//!
//! ```text
//! bare_handshakes server KEYFILE ADDR:PORT COUNT        prints CLOCK_MONOTONIC, ns, at the COUNTth finished handshake
//! bare_handshakes client KEYFILE ADDR:PORT,ADDR:PORT…
//! bare_handshakes child                                 ends when its standard input does
//! ```
//! Each server and client stands for an agent: it starts one child, as an agent starts a worker, reads the key, derives
//! the CA and issues a leaf; a client does one QUIC handshake with each server, all at once, in which both sides show
//! theirs, with the libraries and the kind of runtime that the mesh has. Nothing of the mesh itself is used.

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hkdf::Hkdf;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, Incoming, ServerConfig, TransportConfig};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PKCS_ED25519};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use sha2::Sha256;
use tokio::sync::mpsc;
use transport::clock;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "child") {
        io::copy(&mut io::stdin(), &mut io::sink())?;
        return Ok(());
    }
    let mut child = Command::new(env::current_exe()?).arg("child").stdin(Stdio::piped()).spawn()?;
    let outcome = play(&words);
    drop(child.stdin.take());
    child.wait()?;
    outcome
}

fn play(words: &[String]) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", key, address, count] => {
            runtime.block_on(serve(&Shown::issue(key)?, address.parse()?, count.parse()?))
        }
        ["client", key, addresses] => {
            let addresses = addresses.split(',').map(str::parse).collect::<Result<_, _>>()?;
            runtime.block_on(dial(&Shown::issue(key)?, addresses))
        }
        _ => {
            Err("usage: bare_handshakes server KEYFILE ADDR:PORT COUNT | client KEYFILE ADDR:PORT,… | child"
                .into())
        }
    }
}

async fn serve(shown: &Shown, address: SocketAddr, count: usize) -> Outcome<()> {
    let endpoint = Endpoint::server(shown.server()?, address)?;
    let (done, mut finished) = mpsc::channel(count.max(1));
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            let done = done.clone();
            tokio::spawn(async move {
                if let Some(connection) = finish(incoming).await {
                    let _: Result<_, _> = done.send((clock::now(), connection)).await;
                }
            });
        }
    });
    let mut last = clock::now();
    for _ in 0..count {
        let (at, connection) = finished.recv().await.ok_or("the endpoint was closed")?;
        connection.close(0_u8.into(), b"");
        last = at;
    }
    println!("{}", last.as_nanos());
    endpoint.wait_idle().await;
    Ok(())
}

/// The handshake as the accepting side: it is over when the client's certificate has been judged.
async fn finish(incoming: Incoming) -> Option<Connection> {
    incoming.await.ok()
}

async fn dial(shown: &Shown, addresses: Vec<SocketAddr>) -> Outcome<()> {
    let local = addresses.first().ok_or("no address is named")?.ip();
    let mut endpoint = Endpoint::client(SocketAddr::new(local, 0))?;
    endpoint.set_default_client_config(shown.client()?);
    let connecting = addresses.iter().map(|address| endpoint.connect(*address, NAME));
    let handshakes: Vec<_> = connecting.map(|one| one.map(tokio::spawn)).collect::<Result<_, _>>()?;
    for handshake in handshakes {
        handshake.await??.closed().await;
    }
    Ok(())
}

/// What a process shows to the other side.
struct Shown {
    authority: CertificateDer<'static>,
    leaf: CertificateDer<'static>,
    leaf_key: PrivatePkcs8KeyDer<'static>,
}

impl Shown {
    fn issue(key_file: &str) -> Outcome<Self> {
        let secret = STANDARD.decode(fs::read_to_string(key_file)?.trim())?;
        let mut pkcs8 = [0; PKCS8_ED25519.len() + 32];
        let (prefix, seed) = pkcs8.split_at_mut(PKCS8_ED25519.len());
        prefix.copy_from_slice(PKCS8_ED25519);
        Hkdf::<Sha256>::new(Some(b"bare handshakes"), &secret)
            .expand(b"authority", seed)
            .map_err(|_| "32 bytes are more than HKDF gives")?;
        let der = PrivatePkcs8KeyDer::from(pkcs8.as_slice());
        let authority_key = KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ED25519)?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let authority = params.self_signed(&authority_key)?.der().clone();
        let issuer = Issuer::new(params, authority_key);
        let leaf_key = KeyPair::generate_for(&PKCS_ED25519)?;
        let leaf = CertificateParams::new(vec![NAME.to_owned()])?.signed_by(&leaf_key, &issuer)?;
        Ok(Self {
            authority,
            leaf: leaf.der().clone(),
            leaf_key: PrivatePkcs8KeyDer::from(leaf_key.serialize_der()),
        })
    }

    fn server(&self) -> Outcome<ServerConfig> {
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(self.roots()?, Arc::clone(&provider)).build()?;
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![self.leaf.clone()], self.key())?;
        config.send_tls13_tickets = 0;
        let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(config)?));
        server.transport_config(Arc::new(TransportConfig::default()));
        Ok(server)
    }

    fn client(&self) -> Outcome<ClientConfig> {
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(self.roots()?, Arc::clone(&provider)).build()?;
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_webpki_verifier(verifier)
            .with_client_auth_cert(vec![self.leaf.clone()], self.key())?;
        let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(config)?));
        let mut transport = TransportConfig::default();
        transport.initial_rtt(FIRST_RTT);
        client.transport_config(Arc::new(transport));
        Ok(client)
    }

    fn roots(&self) -> Outcome<Arc<RootCertStore>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone())?;
        Ok(Arc::new(roots))
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from(self.leaf_key.clone_key())
    }
}

/// The name in every leaf.
const NAME: &str = "bare.example";

/// A client that starts before the server listens tries again after three of these, so the yardstick does not wait for
/// the second that QUIC's default of 333 ms (RFC 9002 section 6.2.2) makes of it.
const FIRST_RTT: Duration = Duration::from_millis(10);

/// What stands before the 32 bytes of an Ed25519 key in PKCS#8 (RFC 8410 section 7).
const PKCS8_ED25519: &[u8] =
    &[0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
