//! The worker's arguments. They come from its agent; a person uses only `probe`.

use clap::{Parser, ValueEnum};
use tracing::level_filters::LevelFilter;

use crate::cpus::CpuSet;

/// What the worker was started with.
#[derive(Clone, Debug, Parser)]
#[command(name = "railmesh-worker", version, about = "Measures for its agent; started by it, not by hand")]
pub(super) struct Args {
    /// What to do.
    #[arg(value_enum, default_value_t = Mode::Serve)]
    pub(super) mode: Mode,
    /// The process that must be the parent; ends at once if it is not.
    #[arg(long, value_name = "PID")]
    pub(super) parent: Option<i32>,
    /// The processors to use, such as 1-7,9; default: those of the parent.
    #[arg(long, value_name = "LIST")]
    pub(super) cpus: Option<CpuSet>,
    /// How much to log to standard error: off, error, warn, info, debug or trace.
    #[arg(long, value_name = "LEVEL", default_value_t = LevelFilter::INFO)]
    pub(super) log: LevelFilter,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Mode {
    /// Measure what the parent asks for, until it closes the pipe.
    Serve,
    /// Write one frame with build and capabilities, and end.
    Probe,
}
