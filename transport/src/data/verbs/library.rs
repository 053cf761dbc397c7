//! The library, loaded once a process and never unloaded.

use std::sync::OnceLock;

use super::sys::{LoadError, Symbols};

/// The library's functions.
///
/// # Errors
/// [`LoadError`]; the next call tries again, since the package may be installed meanwhile.
pub(super) fn library() -> Result<&'static Symbols, LoadError> {
    static LIBRARY: OnceLock<Symbols> = OnceLock::new();
    match LIBRARY.get() {
        Some(symbols) => Ok(symbols),
        None => {
            let symbols = Symbols::load()?;
            Ok(LIBRARY.get_or_init(|| symbols))
        }
    }
}
