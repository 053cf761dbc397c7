//! Units: a number and what it counts, with parsing and rounding beside it.

mod bytes;
mod duration;
mod rate;

pub use bytes::{Bytes, BytesError};
pub use duration::{DurationError, exact_duration, format_duration, parse_duration};
pub use rate::{BitsPerSecond, RateError};
