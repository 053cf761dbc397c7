//! Waiting for something that others bring about, with a bound.

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Looks now, and again each time `news` notifies its waiters, until `look` finds something; `None` at the deadline.
/// Cancelling it loses nothing.
pub(crate) async fn look_until<T>(
    news: &Notify,
    deadline: Instant,
    mut look: impl FnMut() -> Option<T>,
) -> Option<T> {
    loop {
        let notified = news.notified();
        tokio::pin!(notified);
        // From here on it hears what comes between the look and the wait.
        notified.as_mut().enable();
        let found = look();
        if found.is_some() || timeout_at(deadline, notified).await.is_err() {
            return found;
        }
    }
}
