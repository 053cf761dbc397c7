//! Tests over the recording library: the loader finds a library by its environment at start, so each runs again in a
//! process of its own, with the library, a scenario and a folder for the data.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Two RoCE devices with the tables that mlx5 makes.
pub(crate) const ROCE: &str = "
device mlx5_0
port 1 link=ethernet mtu=1024
gid 0 fe80::e42:a1ff:fe6c:1a2e type=roce1 netdev=lo
gid 1 fe80::e42:a1ff:fe6c:1a2e type=roce2 netdev=lo
gid 2 ::ffff:127.0.0.1 type=roce1 netdev=lo
gid 3 ::ffff:127.0.0.1 type=roce2 netdev=lo
device mlx5_1
port 1 link=ethernet mtu=4096
gid 0 fe80::e42:a1ff:fe6c:1a2f type=roce2 netdev=lo
gid 1 ::ffff:127.0.0.2 type=roce2 netdev=lo
log_data 0
";

/// Two InfiniBand devices of one subnet.
pub(crate) const INFINIBAND: &str = "
device mlx5_0
port 1 lid=12 sm_lid=1
pkey 0 0xffff
gid 0 fe80::e42:a103:6c:1a2e
device mlx5_1
port 1 lid=13 sm_lid=1
pkey 0 0xffff
gid 0 fe80::e42:a103:6c:1a2f
log_data 0
";

/// Runs `body` where the recording library plays `scenario`: in a child of this test, whose full name is `name`.
pub(crate) fn over(name: &str, scenario: &str, body: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        return body();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario");
    fs::write(&file, scenario).unwrap();
    let child = Command::new(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .env("LD_LIBRARY_PATH", library())
        .env("RAILMESH_FAKEVERBS", &file)
        .env("RAILMESH_FAKEVERBS_DIR", folder.path())
        .env("RAILMESH_FAKEVERBS_LOG", folder.path().join("log"))
        .output()
        .unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success(), "{name}: {}\n{said}", child.status);
    // A name that fits nothing would pass with no test run.
    assert!(said.contains("1 passed"), "{name} is not this test's name:\n{said}");
}

/// The record of this process, a line of JSON a call.
pub(crate) fn record() -> String {
    let path = env::var("RAILMESH_FAKEVERBS_LOG").unwrap();
    fs::read_to_string(format!("{path}.{}", std::process::id())).unwrap()
}

/// The folder with the library, built once a process.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fakeverbs/build.sh");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fakeverbs");
        let built = Command::new("sh").arg(script).arg(&folder).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        folder
    })
}

/// Set in the child.
const INSIDE: &str = "RAILMESH_TEST_INSIDE";
