//! Who belongs to a mesh: the shared key, and the certificates that follow from it.
//!
//! ```text
//!  mesh key (256 random bits) ─HKDF-SHA256─▶ Ed25519 seed ─▶ mesh CA, the same bytes on every node
//!                                                               │ signs
//!                                            fresh key ─▶ leaf of this process: its NodeId as a name
//! ```
//!
//! Whoever holds the key can issue any name: a name tells honest nodes apart, it does not authorise.

mod certificate;
mod key;

pub(crate) use certificate::AGENT_SERVER_NAME;
pub use certificate::{Holder, HolderError, Identity, IdentityError};
pub use key::{KeyError, MeshKey};
