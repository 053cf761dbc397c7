//! The fence: the highest epoch this node has seen. Commands of a lower one are refused.

use std::sync::Mutex;

use bench_core::ids::Epoch;

/// The highest epoch seen. Only grows.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    highest: Mutex<Option<Epoch>>,
}

/// What the fence says of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// It may be obeyed.
    Open,
    /// A higher epoch was seen.
    Stale {
        /// That epoch.
        seen: Epoch,
    },
}

impl Fence {
    /// Holds a command's epoch against the highest seen, and remembers it if it is higher.
    pub(crate) fn pass(&self, epoch: Epoch) -> Passage {
        let mut highest = self.lock();
        match *highest {
            Some(seen) if epoch < seen => Passage::Stale { seen },
            Some(_) | None => {
                *highest = Some(epoch);
                Passage::Open
            }
        }
    }

    /// Remembers an epoch that another node has seen.
    pub(crate) fn raise(&self, epoch: Option<Epoch>) {
        let mut highest = self.lock();
        *highest = (*highest).max(epoch);
    }

    /// The highest epoch seen.
    pub(crate) fn highest(&self) -> Option<Epoch> {
        *self.lock()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Epoch>> {
        self.highest
            .lock()
            .expect("nothing panics while the fence is held")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_epoch_is_refused_and_the_fence_never_falls() {
        let epoch = |term, elector| Epoch { term, elector };
        let fence = Fence::default();
        assert_eq!(fence.pass(epoch(2, 0)), Passage::Open);
        assert_eq!(fence.pass(epoch(1, 4)), Passage::Stale { seen: epoch(2, 0) });
        assert_eq!(fence.pass(epoch(2, 1)), Passage::Open);
        fence.raise(Some(epoch(2, 0)));
        assert_eq!(fence.highest(), Some(epoch(2, 1)));
    }
}
