//! The host: name, kernel, clock source. All labels, but for the clock source: hot loops read that clock.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Facts of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The kernel's host name.
    pub hostname: String,
    /// The kernel's release.
    pub kernel: String,
    /// Processors that this process may use.
    pub cpus: u32,
    /// The kernel's clock source, such as `tsc`.
    pub clock_source: Option<String>,
}

/// Reads the facts of the host, with `/sys` and `/proc` below `root` (`/` for the live machine).
pub fn read_host(root: &Path) -> Host {
    let line = |path: &str| fs::read_to_string(root.join(path)).ok().map(|text| text.trim().to_owned());
    Host {
        hostname: line("proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".to_owned()),
        kernel: line("proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned()),
        cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        clock_source: line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }
}

/// Seconds since 1970 on this node's wall clock: a label for people, never compared.
pub fn wall_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
