//! What a person or a script gets to see: progress on stderr, the report on stdout, the run folder on disk.

mod folder;
mod progress;

pub use folder::{FolderError, RunFolder};
pub use progress::Progress;
