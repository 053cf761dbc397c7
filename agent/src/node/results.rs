//! The result of the latest run that this elector was told to keep.

use std::sync::Mutex;

use bench_core::ids::{Epoch, RunId};
use bench_core::message::{RunStatus, WatchReply};
use bench_core::record::{self, RunRecord};

/// The result that this elector keeps: one run's records, of the highest epoch that told them.
#[derive(Debug, Default)]
pub(crate) struct Results {
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug)]
struct Kept {
    epoch: Epoch,
    run: RunId,
    records: Vec<RunRecord>,
}

impl Results {
    /// Records of a whole result from number `from` on, as many as fit a message; `None` if it is not here.
    pub(crate) fn read(&self, run: RunId, from: u64) -> Option<WatchReply> {
        let kept = self.kept.lock().expect(HELD);
        let kept = kept.as_ref().filter(|kept| kept.run == run)?;
        let Some(RunRecord::Ended(_)) = kept.records.last() else {
            return None;
        };
        let rounds = kept.records.iter().filter(|record| match record {
            RunRecord::Round(_) => true,
            RunRecord::Started(_)
            | RunRecord::Observed(_)
            | RunRecord::Lost(_)
            | RunRecord::Added(_)
            | RunRecord::Note(_)
            | RunRecord::Ended(_) => false,
        });
        let rounds = rounds.count() as u32;
        let fresh = kept.records.get(from as usize..).unwrap_or_default();
        Some(WatchReply {
            run,
            epoch: kept.epoch,
            from,
            records: record::batch(fresh).to_vec(),
            status: RunStatus {
                run,
                phase: "ended".to_owned(),
                rounds_done: rounds,
                rounds_total: rounds,
                waiting_for: Vec::new(),
                ended: true,
            },
        })
    }

    /// Keeps `records` as numbers `from` on of the run's result.
    ///
    /// # Errors
    /// A sentence if records before `from` are not here.
    pub(crate) fn keep(
        &self,
        epoch: Epoch,
        run: RunId,
        from: u64,
        records: Vec<RunRecord>,
    ) -> Result<(), String> {
        let mut kept = self.kept.lock().expect(HELD);
        let mut own = match kept.take() {
            Some(kept) if kept.run == run && kept.epoch == epoch => kept.records,
            Some(_) | None => Vec::new(),
        };
        let here = own.len();
        let gap = from > here as u64;
        if !gap {
            own.truncate(from as usize);
            own.extend(records);
        }
        *kept = Some(Kept { epoch, run, records: own });
        if gap {
            return Err(format!("only {here} records of run {run} are here, not {from}"));
        }
        Ok(())
    }
}

/// Why this lock cannot be poisoned.
const HELD: &str = "nothing panics while the results are held";
