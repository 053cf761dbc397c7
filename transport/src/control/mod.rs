//! The control mesh: who may talk ([`identity`]), in which form ([`wire`]), over which connections ([`mesh`],
//! [`peers`], [`keep`]) and to which addresses ([`resolve`]).
//!
//! It leaves to others what is said: requests reach an implementation of [`mesh::Service`], and nothing here knows
//! what a round or a run is. Measured traffic never travels here.
//!
//! ```text
//!  name ─resolve─▶ address ─Mesh::dial─▶ TLS 1.3 (one mesh key, one build) ─hello─▶ Welcome ─▶ Connection ─call─▶ answer
//!                                              │                             │
//!                                         DialError                       Refusal
//! ```

pub mod backoff;
pub mod identity;
pub mod keep;
pub mod mesh;
pub mod peers;
mod random;
pub mod resolve;
pub mod wire;
