//! The term of a lone elector: a number in a file that grows with every start, so that an epoch is never used twice.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bench_core::ids::Generation;
use thiserror::Error;

/// Raises the term kept in `folder` by one and returns it. The new term is on disk before this returns.
///
/// # Errors
/// [`TermError`] if the file is unreadable or damaged, or cannot be replaced.
pub fn next_term(folder: &Path, generation: Generation) -> Result<u64, TermError> {
    let path = folder.join(format!("term-{generation}"));
    let io = |source| TermError::Io {
        path: path.clone(),
        source,
    };
    fs::create_dir_all(folder).map_err(io)?;
    let last = match fs::read_to_string(&path) {
        Ok(text) => parse(&text).ok_or_else(|| TermError::Damaged { path: path.clone() })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(io(error)),
    };
    let term = last + 1;
    replace(folder, &path, term).map_err(io)?;
    Ok(term)
}

/// Writes beside the file, syncs, renames over it and syncs the folder: a torn write leaves the old term.
fn replace(folder: &Path, path: &Path, term: u64) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = File::create(&fresh)?;
    let body = format!("{term}");
    write!(file, "{body} {:08x}\n", checksum(&body))?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    File::open(folder)?.sync_all()
}

fn parse(text: &str) -> Option<u64> {
    let (body, sum) = text.strip_suffix('\n')?.split_once(' ')?;
    (u32::from_str_radix(sum, 16).ok()? == checksum(body)).then_some(())?;
    body.parse().ok()
}

fn checksum(body: &str) -> u32 {
    crc32c::crc32c(body.as_bytes())
}

/// Why the term is not known.
#[derive(Debug, Error)]
pub enum TermError {
    /// The file cannot be read or replaced.
    #[error("the election term in {path} cannot be kept: {source}; name a folder that can be written with --state", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("the election term in {path} is damaged; remove the file and start every agent with a higher --new-generation", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_term_grows_with_every_start_and_belongs_to_a_generation() {
        let folder = tempfile::tempdir().expect("a directory");
        let next = |generation| next_term(folder.path(), Generation(generation)).expect("a term");
        assert_eq!([next(0), next(0), next(1), next(0)], [1, 2, 1, 3]);
    }

    #[test]
    fn a_damaged_term_is_refused_at_every_byte() {
        let folder = tempfile::tempdir().expect("a directory");
        for _ in 0..12 {
            next_term(folder.path(), Generation(0)).expect("a term");
        }
        let path = folder.path().join("term-0");
        let good = fs::read(&path).expect("written");
        for cut in 0..good.len() {
            fs::write(&path, &good[..cut]).expect("written");
            assert!(
                matches!(
                    next_term(folder.path(), Generation(0)),
                    Err(TermError::Damaged { .. })
                ),
                "cut at {cut}"
            );
            let mut flipped = good.clone();
            flipped[cut] ^= 1;
            fs::write(&path, &flipped).expect("written");
            assert!(
                matches!(
                    next_term(folder.path(), Generation(0)),
                    Err(TermError::Damaged { .. })
                ),
                "flip at {cut}"
            );
        }
    }
}
