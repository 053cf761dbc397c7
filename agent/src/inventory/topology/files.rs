//! Small files, links and folders below a root.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A machine's files.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// A file's text without white space around it; at most [`MAX_BYTES`]. `None` if it is absent or empty.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        File::open(self.root.join(path)).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// A file that holds a number; `None` for a negative one, by which the kernel says that there is none.
    pub(super) fn number(&self, path: &str) -> Option<u32> {
        self.text(path)?.parse().ok()
    }

    /// Where a link points to, as written.
    pub(super) fn link(&self, path: &str) -> Option<String> {
        Some(fs::read_link(self.root.join(path)).ok()?.to_string_lossy().into_owned())
    }

    /// The last part of a link's target.
    pub(super) fn link_name(&self, path: &str) -> Option<String> {
        self.link(path)?.rsplit('/').next().map(str::to_owned)
    }

    /// Whether there is anything at this path.
    pub(super) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The names in a folder, sorted; at most [`MAX_ENTRIES`].
    pub(super) fn list(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.root.join(path)) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.take(MAX_ENTRIES).collect();
        names.sort_unstable();
        names
    }
}

/// Bytes of a file that are read: a page is the most that sysfs gives; procfs has longer ones, whose begin is enough.
const MAX_BYTES: u64 = 16 << 10;
/// Entries of a folder that are read.
const MAX_ENTRIES: usize = 16 << 10;
