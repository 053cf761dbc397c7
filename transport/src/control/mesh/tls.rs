//! TLS 1.3 with both sides' certificates, for quinn.

use std::sync::Arc;
use std::time::Duration;

use bench_core::ids::BuildHash;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore, ServerConfig, version::TLS13};

use super::ControlError;
use crate::control::identity::Identity;

/// The configuration of the accepting side: a certificate of this mesh is demanded.
pub(crate) fn server(identity: &Identity, build: &BuildHash) -> Result<QuicServerConfig, ControlError> {
    let provider = provider();
    let verifier = WebPkiClientVerifier::builder_with_provider(roots(identity)?, Arc::clone(&provider))
        .build()
        .map_err(failed)?;
    let mut config = ServerConfig::builder_with_details(provider, Arc::new(FixedTime))
        .with_protocol_versions(&[&TLS13])
        .map_err(failed)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![identity.leaf().clone()], key(identity))
        .map_err(failed)?;
    config.alpn_protocols = vec![alpn(build)];
    // Each connection is judged anew; a ticket would only cost memory.
    config.send_tls13_tickets = 0;
    QuicServerConfig::try_from(config).map_err(failed)
}

/// The configuration of the dialing side.
pub(crate) fn client(identity: &Identity, build: &BuildHash) -> Result<QuicClientConfig, ControlError> {
    let provider = provider();
    let verifier = WebPkiServerVerifier::builder_with_provider(roots(identity)?, Arc::clone(&provider))
        .build()
        .map_err(failed)?;
    let mut config = ClientConfig::builder_with_details(provider, Arc::new(FixedTime))
        .with_protocol_versions(&[&TLS13])
        .map_err(failed)?
        .with_webpki_verifier(verifier)
        .with_client_auth_cert(vec![identity.leaf().clone()], key(identity))
        .map_err(failed)?;
    config.alpn_protocols = vec![alpn(build)];
    config.resumption = Resumption::disabled();
    QuicClientConfig::try_from(config).map_err(failed)
}

/// The ALPN protocol: it carries the build, so another build fails in the handshake.
pub(crate) fn alpn(build: &BuildHash) -> Vec<u8> {
    format!("railmesh/{build}").into_bytes()
}

/// Given explicitly: a process in which two providers are compiled in has no default one.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub(crate) fn roots(identity: &Identity) -> Result<Arc<RootCertStore>, ControlError> {
    let mut roots = RootCertStore::empty();
    roots.add(identity.authority().clone()).map_err(failed)?;
    Ok(Arc::new(roots))
}

fn key(identity: &Identity) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from(identity.leaf_key())
}

fn failed(error: impl std::fmt::Display) -> ControlError {
    ControlError::Tls { reason: error.to_string() }
}

/// A clock that stands inside every certificate's validity: a node's wall clock may say 1902 or 2106, and must not
/// keep it out of the mesh.
#[derive(Debug)]
struct FixedTime;

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(WITHIN_VALIDITY))
    }
}

/// September 2001: an instant between 1970 and 2500.
const WITHIN_VALIDITY: Duration = Duration::from_secs(1_000_000_000);
