//! The result of the latest run that this elector was told to keep.

use std::sync::Mutex;

use bench_core::ids::{Epoch, RunId};
use bench_core::record::RunRecord;

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
        let mut kept = self.kept.lock().expect("nothing panics while the results are held");
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
