//! The warning lines that a test's thread prints.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Collects the warnings of this thread until it is dropped.
///
/// One subscriber serves all threads of the test process: with one a thread, tracing may remember for good that
/// nobody wants a line which was first reached on a thread without any.
pub(super) struct Lines {
    lines: Arc<Mutex<Vec<String>>>,
}

thread_local! {
    static SINK: RefCell<Option<Arc<Mutex<Vec<String>>>>> = const { RefCell::new(None) };
}

impl Lines {
    pub(super) fn capture() -> Self {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| tracing::subscriber::set_global_default(Collector).unwrap());
        let lines = Arc::new(Mutex::new(Vec::new()));
        SINK.set(Some(Arc::clone(&lines)));
        Self { lines }
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Waits for a line that has all of `words`.
    pub(super) async fn expect(&self, words: &[&str]) {
        let found = |line: &String| words.iter().all(|word| line.contains(word));
        let waiting = super::harness::eventually(|| self.all().iter().any(found));
        if tokio::time::timeout(super::harness::PATIENCE / 2, waiting).await.is_err() {
            panic!("no line with {words:?} among {:#?}", self.all());
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        SINK.set(None);
    }
}

struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("transport")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        SINK.with_borrow(|sink| {
            if let Some(lines) = sink {
                event.record(&mut Message(lines));
            }
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Message<'a>(&'a Mutex<Vec<String>>);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}
