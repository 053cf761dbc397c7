//! Gives the build its identity: a hash over the sources that make the product.
//!
//! Two artefacts of one source tree have the same identity, whatever their features, target or profile: the agent
//! and its worker are two of them.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

fn main() -> io::Result<()> {
    // As it is now, not as it was when this script was compiled: a copied target folder would speak of another tree.
    let manifest =
        env::var_os("CARGO_MANIFEST_DIR").expect("cargo tells build scripts where their package is");
    let root = Path::new(&manifest).parent().expect("the agent's folder lies in the workspace");
    let mut files = Vec::new();
    for place in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(place).display());
        collect(&root.join(place), &mut files)?;
    }
    let mut named: Vec<(String, PathBuf)> =
        files.into_iter().map(|path| (relative(root, &path), path)).collect();
    named.sort();
    let mut hash = Sha256::new();
    for (name, path) in named {
        let contents = fs::read(path)?;
        // Lengths keep a name, its contents and the next name apart.
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
        hash.update((contents.len() as u64).to_le_bytes());
        hash.update(&contents);
    }
    let digest = hash.finalize();
    let id: String = digest[..ID_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=RAILMESH_BUILD_ID={id}");
    Ok(())
}

fn collect(place: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !place.is_dir() {
        files.push(place.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(place)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).expect("every source lies in the workspace").to_string_lossy().into_owned()
}

/// What makes the product, relative to the workspace. The lock file stands for all dependencies.
const SOURCES: [&str; 5] = ["bench-core/src", "coordinator/src", "transport/src", "agent/src", "Cargo.lock"];

/// Length of the identity: that of `bench_core::ids::BuildHash`.
const ID_BYTES: usize = 16;
