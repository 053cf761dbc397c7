//! Who commands the mesh.
//!
//! One elector is the production path for meshes of one or two nodes and what larger meshes use until the electors
//! reach consensus: the first node of the roster commands, its term grows with every start, and its decisions are
//! committed by itself. The run machine hears the same events either way.

mod store;
mod term;
mod types;

pub use term::{TermError, next_term};
