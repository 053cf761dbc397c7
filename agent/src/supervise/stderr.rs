//! A worker's standard error: each line goes to the agent's log with the rail's name, and the last complaint is kept
//! because it often says why a worker died.

use std::sync::{Arc, Mutex, PoisonError};

use bench_core::ids::RailId;
use tokio::io::{AsyncRead, AsyncReadExt};
use tracing::{debug, error, info, trace, warn};

/// The last line that a worker complained with. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct LastWords(Arc<Mutex<Option<String>>>);

impl LastWords {
    /// The line, if there was one.
    pub(super) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, line: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(line.to_owned());
    }
}

/// Forwards lines until the pipe ends. Cancel safe: a dropped call loses at most the line that was not complete.
pub(super) async fn forward(rail: RailId, mut pipe: impl AsyncRead + Unpin, words: LastWords) {
    let mut cutter = LineCutter::default();
    let mut chunk = [0; CHUNK];
    loop {
        match pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(bytes) => cutter.feed(&chunk[..bytes], |line| log(rail, line, &words)),
        }
    }
    cutter.finish(|line| log(rail, line, &words));
}

fn log(rail: RailId, line: &str, words: &LastWords) {
    match level(line) {
        Level::Trace(text) => trace!(%rail, "{text}"),
        Level::Debug(text) => debug!(%rail, "{text}"),
        Level::Info(text) => info!(%rail, "{text}"),
        Level::Warn(text) => {
            words.set(text);
            warn!(%rail, "{text}");
        }
        Level::Error(text) => {
            words.set(text);
            error!(%rail, "{text}");
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Level<'a> {
    Trace(&'a str),
    Debug(&'a str),
    Info(&'a str),
    Warn(&'a str),
    Error(&'a str),
}

/// A worker's log line begins with its level; anything else is from a panic or a vendor library and is a warning.
fn level(line: &str) -> Level<'_> {
    let line = line.trim();
    match line.split_once(' ') {
        Some(("TRACE", text)) => Level::Trace(text),
        Some(("DEBUG", text)) => Level::Debug(text),
        Some(("INFO", text)) => Level::Info(text),
        Some(("WARN", text)) => Level::Warn(text),
        Some(("ERROR", text)) => Level::Error(text),
        Some(_) | None => Level::Warn(line),
    }
}

/// Cuts a stream of bytes into lines of at most [`MAX_LINE`] bytes; the rest of a longer one is left out.
#[derive(Debug, Default)]
struct LineCutter {
    line: Vec<u8>,
    left_out: usize,
}

impl LineCutter {
    fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(&str)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            let kept = text.len().min(MAX_LINE - self.line.len());
            self.line.extend_from_slice(&text[..kept]);
            self.left_out += text.len() - kept;
            if part.len() > text.len() {
                self.finish(&mut each);
            }
        }
    }

    fn finish(&mut self, mut each: impl FnMut(&str)) {
        let mut line = String::from_utf8_lossy(&self.line).into_owned();
        if self.left_out > 0 {
            line.push_str(&format!("... ({} bytes left out)", self.left_out));
        }
        if !line.trim().is_empty() {
            each(&line);
        }
        self.line.clear();
        self.left_out = 0;
    }
}

/// Longest line in bytes that is forwarded whole: longer than any of ours, short enough to read.
const MAX_LINE: usize = 1024;

/// Bytes read at once: a pipe's atomic write (PIPE_BUF, pipe(7)).
const CHUNK: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&str]) -> Vec<String> {
        let (mut cutter, mut lines) = (LineCutter::default(), Vec::new());
        for piece in pieces {
            cutter.feed(piece.as_bytes(), |line| lines.push(line.to_owned()));
        }
        cutter.finish(|line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn lines_are_the_same_however_the_pipe_cuts_them() {
        assert_eq!(cut(&["one\ntwo\n\nthr", "ee"]), ["one", "two", "three"]);
        assert_eq!(cut(&["o", "ne", "\n", "two\nthree\n"]), ["one", "two", "three"]);
    }

    #[test]
    fn a_line_without_end_takes_no_more_than_its_limit() {
        let long = "x".repeat(MAX_LINE);
        let lines = cut(&[&long, &long, "y\nshort\n"]);
        assert_eq!(lines, [format!("{long}... ({} bytes left out)", MAX_LINE + 1), "short".to_owned()]);
    }

    #[tokio::test]
    async fn the_last_complaint_is_kept_and_chatter_is_not() {
        let words = LastWords::default();
        let log = b" INFO ready\nthread 'main' panicked at x.rs\n INFO bye\n";
        forward(RailId(1), &log[..], words.clone()).await;
        assert_eq!(words.get().as_deref(), Some("thread 'main' panicked at x.rs"));
        assert_eq!(level(" INFO railmesh::worker: ready"), Level::Info("railmesh::worker: ready"));
    }
}
