//! The mesh key: one file that makes a node a member.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

use crate::control::random::{self, NoRandomness};

/// The secret that all members of a mesh share: 256 random bits.
///
/// Its text form is base64. Any prober is shown the public key that follows from it before it authenticates, so a key
/// must be random: a chosen word could be guessed offline. That is why no constructor takes a passphrase.
#[derive(Clone, PartialEq, Eq)]
pub struct MeshKey([u8; KEY_BYTES]);

impl MeshKey {
    /// A new random key.
    ///
    /// # Errors
    /// [`KeyError::Randomness`] if the operating system gives no random bytes.
    pub fn generate() -> Result<Self, KeyError> {
        Ok(Self(random::bytes()?))
    }

    /// The key of a mesh without a key: known to everybody, so the mesh serves loopback addresses only.
    pub fn loopback() -> Self {
        Self(*LOOPBACK_KEY)
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// [`KeyError`] if the file cannot be read, is open to others than its owner, or holds no key. One exception: what
    /// Kubernetes makes of a Secret's file with `fsGroup`, which belongs to root and may be read, not written, by a
    /// group of this process that is not root's.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let mode = metadata.mode() & 0o7777;
        if mode & OTHERS != 0 && !is_mounted_secret(mode, metadata.uid(), metadata.gid(), &own_groups()) {
            return Err(KeyError::Exposed { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
        text.trim().parse().map_err(|_| KeyError::Content { path: path.to_owned() })
    }

    /// Writes the key to a new file that only its owner may read.
    ///
    /// # Errors
    /// [`KeyError::Exists`] if there is a file already: a running mesh may depend on it. [`KeyError::Write`] otherwise.
    pub fn write_new(&self, path: &Path) -> Result<(), KeyError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Exists { path: path.to_owned() },
            _ => KeyError::Write { path: path.to_owned(), source },
        };
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        writeln!(file, "{}", STANDARD.encode(self.0)).map_err(failed)?;
        file.sync_all().map_err(failed)
    }

    pub(super) fn secret(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for MeshKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MeshKey(secret)")
    }
}

impl FromStr for MeshKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let bytes = STANDARD.decode(text).map_err(|_| NotAKey)?;
        bytes.try_into().map(Self).map_err(|_| NotAKey)
    }
}

/// A text that is not the base64 form of 256 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a mesh key: a key is 44 characters of base64, as `railmesh keygen` writes it")]
pub struct NotAKey;

/// Why there is no usable mesh key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("failed to read the mesh key {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file's mode lets its group or everybody use it.
    #[error("the mesh key {0} has mode {mode:04o}, others can read it: chmod 600 {0}", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file holds something else.
    #[error("{} is not a mesh key: make one with `railmesh keygen` and copy it to every node", path.display())]
    Content {
        /// The file.
        path: PathBuf,
    },
    /// There is a file already.
    #[error("{} exists already and may be in use: name another file, or remove it first", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("failed to write the mesh key {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No random bytes.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

/// Bytes of a key: the security level of Ed25519 needs no more than 256 bits.
const KEY_BYTES: usize = 32;

/// The well-known key of meshes without a key file.
const LOOPBACK_KEY: &[u8; KEY_BYTES] = b"railmesh loopback: not a secret!";

/// Whether a file that its group can read is a Secret as Kubernetes mounts it for a pod with `fsGroup`: root owns it,
/// the group is one that this process was given for that, it may only read, and nobody else may do anything.
fn is_mounted_secret(mode: u32, owner: u32, group: u32, own_groups: &[u32]) -> bool {
    mode & OTHERS == GROUP_READS && owner == 0 && group != 0 && own_groups.contains(&group)
}

/// The groups of this process.
fn own_groups() -> Vec<u32> {
    let mut groups = vec![rustix::process::getegid().as_raw()];
    let further = rustix::process::getgroups().unwrap_or_default();
    groups.extend(further.into_iter().map(|group| group.as_raw()));
    groups
}

/// The permission bit with which the group reads.
const GROUP_READS: u32 = 0o040;

/// Permission bits of group and world.
const OTHERS: u32 = 0o077;

/// More than a key file has (45 bytes); a file given by mistake is not read whole.
const MAX_FILE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_written_key_reads_back_and_only_its_owner_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mesh.key");
        let key = MeshKey::generate().unwrap();
        key.write_new(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(MeshKey::read(&path).unwrap(), key);
        assert_ne!(key, MeshKey::generate().unwrap());
        assert_ne!(key, MeshKey::loopback());
    }

    #[test]
    fn an_existing_file_is_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mesh.key");
        let first = MeshKey::generate().unwrap();
        first.write_new(&path).unwrap();
        let error = MeshKey::generate().unwrap().write_new(&path).unwrap_err();
        assert!(matches!(error, KeyError::Exists { .. }), "{error}");
        assert_eq!(MeshKey::read(&path).unwrap(), first);
    }

    #[test]
    fn a_key_that_others_can_read_is_refused_with_the_chmod_to_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mesh.key");
        MeshKey::generate().unwrap().write_new(&path).unwrap();
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = MeshKey::read(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("chmod 600 {}", path.display())), "{error}");
            assert!(error.contains(&format!("{mode:04o}")), "{error}");
        }
    }

    #[test]
    fn a_secret_that_kubernetes_mounted_for_a_group_of_this_process_may_be_read_by_it() {
        let groups = [1000, 2000];
        assert!(is_mounted_secret(0o440, 0, 2000, &groups));
        assert!(is_mounted_secret(0o640, 0, 1000, &groups), "as defaultMode 0600 becomes with fsGroup");
        for (mode, owner, group, why) in [
            (0o440, 1000, 2000, "a user's file that his group can read is an accident"),
            (0o440, 0, 3000, "a group of somebody else"),
            (0o440, 0, 0, "root's own group is given for nothing"),
            (0o460, 0, 2000, "the group could replace it"),
            (0o444, 0, 2000, "everybody reads it"),
            (0o450, 0, 2000, "no such mode is made of a Secret"),
        ] {
            assert!(!is_mounted_secret(mode, owner, group, &groups), "{why}");
        }
    }

    #[test]
    fn a_file_without_a_key_is_refused_without_showing_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        for content in ["hunter2", "", "QUJD", &"A".repeat(100_000)] {
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            let error = MeshKey::read(&path).unwrap_err();
            assert!(matches!(error, KeyError::Content { .. }), "{error}");
            assert!(!error.to_string().contains("hunter2"));
        }
        let missing = MeshKey::read(&dir.path().join("absent")).unwrap_err();
        assert!(matches!(missing, KeyError::Read { .. }));
    }

    #[test]
    fn debug_output_does_not_show_the_secret() {
        let text = format!("{:?}", MeshKey::loopback());
        assert_eq!(text, "MeshKey(secret)");
    }
}
