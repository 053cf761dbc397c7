//! Where the executable under test is, and that it is the one of this source tree.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use railmesh::build_id::build_hash;

/// The executable: `RAILMESH_BIN`, else the one that cargo put beside the folder of this test.
///
/// # Panics
/// If there is none, or if it was built from other sources: a scenario that passes with it would prove nothing.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(find)
}

fn find() -> PathBuf {
    let path = match env::var_os("RAILMESH_BIN") {
        Some(path) => PathBuf::from(path),
        None => beside_this_test(),
    };
    let bytes = fs::read(&path).unwrap_or_else(|error| {
        panic!(
            "no executable at {}: {error}; run `cargo build` first, or name one with RAILMESH_BIN",
            path.display()
        )
    });
    let id = build_hash().to_string();
    assert!(
        position(&bytes, id.as_bytes(), 0).is_some(),
        "{} was built from other sources than this test (build {id}): run `cargo build` again",
        path.display()
    );
    path
}

/// `target/debug/deps/scenarios-…` lies one folder below `target/debug/railmesh`.
fn beside_this_test() -> PathBuf {
    let test = env::current_exe().expect("the kernel names this executable");
    let folder = test.ancestors().nth(2).expect("cargo runs tests from target/PROFILE/deps");
    folder.join("railmesh")
}

/// Writes a copy of the executable that says it is of build `id` instead of its own.
pub(crate) fn write_other_build(copy: &Path, id: &str) {
    let own = build_hash().to_string();
    assert_eq!(own.len(), id.len(), "the copy stays runnable because nothing moves");
    let mut bytes = fs::read(program()).expect("read before");
    let mut from = 0;
    let mut found = 0;
    while let Some(at) = position(&bytes, own.as_bytes(), from) {
        bytes[at..at + id.len()].copy_from_slice(id.as_bytes());
        from = at + id.len();
        found += 1;
    }
    assert!(found > 0, "the executable holds its build id as text");
    // Copying keeps the mode, writing then only the bytes.
    fs::copy(program(), copy).expect("the copy can be made");
    fs::write(copy, bytes).expect("the copy can be written");
}

fn position(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(step) = bytes[at..].iter().position(|byte| *byte == wanted[0]) {
        at += step;
        if bytes[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
    None
}
