//! Logs: one line an event, on stderr.

use std::io;

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
