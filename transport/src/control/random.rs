//! Random bytes of the operating system, through the same provider that TLS uses.

use thiserror::Error;

/// `N` random bytes fit for keys.
///
/// # Errors
/// [`NoRandomness`] if the operating system gives none.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

/// The operating system gave no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the operating system gives no random bytes: is getrandom(2) forbidden here by a seccomp profile?")]
pub struct NoRandomness;
