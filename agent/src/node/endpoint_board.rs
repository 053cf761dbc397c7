//! What is known of the ends of a round's cells at one side: told once each, waited for by whoever needs them.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_core::ids::CellId;
use bench_core::message::CellEndpoint;
use tokio::sync::watch;
use tokio::time::timeout;

/// Ends by cell. Holds as many as the round has cells; the last word about an end stands.
#[derive(Debug)]
pub(super) struct EndpointBoard(watch::Sender<BTreeMap<CellId, CellEndpoint>>);

impl EndpointBoard {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(BTreeMap::new()))
    }

    /// Tells what became of an end.
    pub(super) fn tell(&self, told: impl IntoIterator<Item = CellEndpoint>) {
        self.0.send_modify(|known| known.extend(told.into_iter().map(|end| (end.cell, end))));
    }

    /// What is known of the ends of `cells`, as soon as all are told of, at the latest after `limit`; `None` for each
    /// that is not.
    pub(super) async fn wait(&self, cells: &[CellId], limit: Duration) -> Vec<Option<CellEndpoint>> {
        let mut watcher = self.0.subscribe();
        let all = watcher.wait_for(|known| cells.iter().all(|cell| known.contains_key(cell)));
        // The sender lives in `self`, so only the time can end the wait early; then what is known is told.
        let _: Result<_, _> = timeout(limit, all).await;
        let known = self.0.borrow();
        cells.iter().map(|cell| known.get(cell).cloned()).collect()
    }
}
