//! Playing rounds: the schedule, then retries of what infrastructure failed, then retests of suspects.

use bench_core::journal;
use bench_core::judge::{self, Load, RunView as JudgedRun};
use bench_core::plan::Retest;
use bench_core::record::{RunEnd, RunRecord};

use super::{ActiveRound, Context, Run, RunPhase, Step};

impl Run {
    /// Plays rounds: prepares the next while the current one measures, starts it when the current one is over.
    /// Returns whether anything moved.
    pub(super) fn play(&mut self, context: &mut Context<'_>) -> bool {
        if let Some(round) = self.current.take_if(|round| round.is_over()) {
            self.records.extend(round.into_losses().into_iter().map(RunRecord::Lost));
            self.queue.round_over();
            return true;
        }
        if let Some(round) = self.next.take_if(|round| round.is_over()) {
            self.records.extend(round.into_losses().into_iter().map(RunRecord::Lost));
            self.queue.round_over();
            return true;
        }
        if self.current.is_none()
            && let Some(mut round) = self.next.take_if(|round| round.is_ready())
        {
            self.records.push(RunRecord::Round(round.start(self.lead.next(), context)));
            self.current = Some(round);
            return true;
        }
        if self.next.is_none() {
            let rails = self.schedule.as_ref().map_or(0, |schedule| schedule.rails().len());
            return match self.queue.pull(self.schedule.as_ref(), Load::of(&self.plan, rails)) {
                Some(planned) => {
                    let step = ActiveRound::begin(
                        planned,
                        self.id,
                        self.epoch,
                        &self.plan,
                        &self.inventories,
                        context,
                    );
                    match step {
                        Step::Preparing(round) => self.next = Some(*round),
                        Step::Nothing(losses) => {
                            self.records.extend(losses.into_iter().map(RunRecord::Lost));
                            self.queue.round_over();
                        }
                    }
                    true
                }
                None => self.current.is_none() && self.turn_over(context),
            };
        }
        false
    }

    /// Everything that was queued has been played.
    fn turn_over(&mut self, context: &mut Context<'_>) -> bool {
        match self.phase {
            RunPhase::Measuring => {
                if !self.has_collected(context) {
                    return false;
                }
                self.phase = RunPhase::Retrying;
                self.queue_retries(context);
            }
            RunPhase::Retrying => {
                self.phase = RunPhase::Retesting;
                if self.plan.retest == Retest::Suspects {
                    self.queue_retests(context);
                }
            }
            RunPhase::Retesting => self.finish(RunEnd::Completed, context),
            RunPhase::Accepting
            | RunPhase::Recovering
            | RunPhase::Joining
            | RunPhase::Probing
            | RunPhase::Storing
            | RunPhase::Ending
            | RunPhase::Ended => {
                return false;
            }
        }
        true
    }

    fn queue_retries(&mut self, context: &Context<'_>) {
        let merged = journal::merge(self.observed());
        let retries: Vec<_> = self
            .lost_cells(&merged)
            .into_iter()
            .filter(|cell| context.members.is_present(cell.src) && context.members.is_present(cell.dst))
            .collect();
        for cells in judge::pack(retries) {
            self.queue.add_retry(cells);
        }
    }

    fn queue_retests(&mut self, context: &Context<'_>) {
        let next_id = self.queue.next_cell_id(self.schedule.as_ref());
        let Some(schedule) = &self.schedule else { return };
        let Ok(view) = JudgedRun::new(&self.records, schedule) else {
            return;
        };
        let mut cells = judge::retests(&view, &judge::judge(&view), next_id);
        cells.retain(|cell| context.members.is_present(cell.src) && context.members.is_present(cell.dst));
        if !cells.is_empty() {
            self.records.push(RunRecord::Added(cells.clone()));
            self.queue.note_added(cells.len());
            for cells in judge::pack(cells) {
                self.queue.add_first(cells);
            }
        }
    }
}
