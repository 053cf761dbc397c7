//! Logs: one line an event, on stderr or into a file.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use tracing::level_filters::LevelFilter;

/// Logs to stderr from `least` on; each `-v` adds a level.
pub(crate) fn to_stderr(least: LevelFilter, verbose: u8) {
    let level = raise(least, verbose);
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .with_target(false)
        .init();
}

/// Logs into a file.
///
/// # Errors
/// The kernel's refusal to make the file.
pub(crate) fn to_file(path: &Path, verbose: u8) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let file = File::create(path)?;
    let level = raise(LevelFilter::INFO, verbose);
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_writer(Mutex::new(file))
        .init();
    Ok(())
}

fn raise(least: LevelFilter, verbose: u8) -> LevelFilter {
    let levels = [
        LevelFilter::WARN,
        LevelFilter::INFO,
        LevelFilter::DEBUG,
        LevelFilter::TRACE,
    ];
    let start = levels.iter().position(|level| *level == least).unwrap_or(0);
    levels[(start + usize::from(verbose)).min(levels.len() - 1)]
}
