//! One-shot agents: when all of them have come, their run is begun as if a client had submitted it.

use bench_core::ids::{NodeIndex, RunId};
use bench_core::message::Attending;
use bench_core::time::Mono;

use super::Coordinator;
use crate::muster::{Attendance, Comer, Known, Muster};
use crate::run::{Context, Run};

impl Coordinator {
    /// How far the run of this agent is; `None` if this elector does not command.
    pub fn attendance(&self, node: NodeIndex, run: RunId, now: Mono) -> Option<Attendance> {
        self.epoch?;
        let settled = now >= self.join_deadline;
        let roster = &self.config.roster;
        Some(self.muster.attendance(node, self.known(run), settled, &self.members, roster))
    }

    pub(super) fn attended(
        &mut self,
        comer: Comer,
        attending: Attending,
        printed_by: Option<NodeIndex>,
        now: Mono,
    ) {
        if self.epoch.is_none() {
            return;
        }
        let (node, known) = (comer.node, self.known(comer.run));
        self.muster.come(comer, known, &self.config.roster);
        if let Some(by) = printed_by {
            self.muster.printed(by);
        }
        match attending {
            Attending::Present => {}
            Attending::Done => self.muster.done(node),
        }
        self.play_agreed(now);
    }

    /// When the muster is closed; `None` if that changes nothing.
    pub(super) fn muster_deadline(&self) -> Option<Mono> {
        (self.epoch.is_some() && self.muster.is_open()).then_some(self.join_deadline)
    }

    /// Closes the muster if its time is over.
    pub(super) fn close_muster(&mut self, now: Mono) {
        if self.muster_deadline().is_some_and(|deadline| now >= deadline) {
            self.muster.close();
            self.play_agreed(now);
        }
    }

    /// Everybody comes anew.
    pub(super) fn muster_anew(&mut self) {
        self.muster = Muster::default();
    }

    /// Begins the run that everybody means, once no other is on.
    pub(super) fn play_agreed(&mut self, now: Mono) {
        let (Some(epoch), Some(agreed)) = (self.epoch, self.muster.agreed().cloned()) else {
            return;
        };
        if self.known(agreed.run) != Known::Not {
            return;
        }
        match self.runs.back() {
            // A client's: the job comes after it.
            Some(open) if !open.is_ended() => {}
            Some(_) | None => {
                if let Some(reason) = self.unfit(&agreed.plan) {
                    self.muster.refuse(format!("the plan was rejected: {reason}"));
                    return;
                }
                let mut out = Vec::new();
                let mut context =
                    Context { config: &self.config, members: &self.members, out: &mut out, now };
                let run = Run::new(agreed.run, *agreed.plan, epoch, None, agreed.wall_seconds, &mut context);
                self.keep(run);
                self.commands.extend(out);
            }
        }
    }

    fn known(&self, run: RunId) -> Known {
        match self.runs.iter().find(|known| known.id == run) {
            Some(known) if known.is_ended() => Known::Over,
            Some(_) => Known::On,
            None if self.decisions.is_running(run) => Known::On,
            None if self.decisions.ended == Some(run) => Known::Over,
            None => Known::Not,
        }
    }
}
