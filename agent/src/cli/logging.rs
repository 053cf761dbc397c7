//! Logs: one line an event, on stderr; coloured on a terminal only, and not where NO_COLOR is set.

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

/// Logs to stderr from `least` on; each `-v` adds a level.
pub(crate) fn to_stderr(least: LevelFilter, verbose: u8) {
    let level = raise(least, verbose);
    // openraft logs every message at its own debug level and every lost one as an error: what matters of it, the
    // electors say themselves. With -vv it speaks too.
    let raft = if verbose < RAFT_FROM { "off" } else { "debug" };
    let filter = EnvFilter::new(format!("{level},openraft={raft}"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(
            io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        )
        .with_target(false)
        .init();
}

fn raise(least: LevelFilter, verbose: u8) -> LevelFilter {
    let levels = [LevelFilter::WARN, LevelFilter::INFO, LevelFilter::DEBUG, LevelFilter::TRACE];
    let start = levels.iter().position(|level| *level == least).unwrap_or(0);
    levels[(start + usize::from(verbose)).min(levels.len() - 1)]
}

/// How many `-v` make openraft speak.
const RAFT_FROM: u8 = 2;
