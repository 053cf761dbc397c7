//! A verb that failed: which, on what, with which errno, and what to do about it.

use rustix::io::Errno;
use thiserror::Error;

use super::errno;

/// A verb that returned an error.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{verb} {about} failed: {}", errno::text(*.errno))]
pub(super) struct VerbError {
    /// Which.
    pub(super) verb: Verb,
    /// On what, such as `of port 1 of mlx5_0`.
    pub(super) about: String,
    /// The error that it returned.
    pub(super) errno: Errno,
}

/// The verbs that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// Lists devices.
    GetDeviceList,
    /// Opens a device.
    OpenDevice,
    /// Closes one.
    CloseDevice,
}

impl Verb {
    /// The function's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::GetDeviceList => "ibv_get_device_list",
            Self::OpenDevice => "ibv_open_device",
            Self::CloseDevice => "ibv_close_device",
        }
    }
}

impl std::fmt::Display for Verb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Takes note of something that could not be given back: it stays with the process, and nothing that still needs it
/// breaks.
pub(super) fn leak(released: Result<(), VerbError>) {
    if let Err(error) = released {
        tracing::warn!("{error}: it is given back when the worker ends");
    }
}
