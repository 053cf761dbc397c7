//! Which build this is. All members of a mesh, and an agent and its workers, run the same one.

use bench_core::ids::BuildHash;

/// The version of the release, for people; compatibility is decided by [`build_hash`] alone.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The hash over the sources of this build.
pub fn build_hash() -> BuildHash {
    env!("RAILMESH_BUILD_ID").parse().expect("the build script writes 32 hexadecimal digits")
}
