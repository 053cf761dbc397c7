//! What clients may see of a run.

use bench_core::ids::{Epoch, NodeId, RunId};
use bench_core::message::RunStatus;
use bench_core::record::RunRecord;

use super::{ActiveRound, Run};
use crate::config::Config;
use crate::members::Members;

/// What clients may see of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    run: &'a Run,
    config: &'a Config,
    members: &'a Members,
}

impl<'a> RunView<'a> {
    pub(crate) fn new(run: &'a Run, config: &'a Config, members: &'a Members) -> Self {
        Self { run, config, members }
    }

    /// The run.
    pub fn id(&self) -> RunId {
        self.run.id
    }

    /// The epoch whose coordinator numbered the records.
    pub fn epoch(&self) -> Epoch {
        self.run.epoch
    }

    /// All records so far, in order.
    pub fn records(&self) -> &'a [RunRecord] {
        &self.run.records
    }

    /// How far it is.
    pub fn status(&self) -> RunStatus {
        let (rounds_done, rounds_total) = self.run.queue.progress(self.run.schedule.as_ref());
        RunStatus {
            run: self.run.id,
            phase: self.run.phase.to_string(),
            rounds_done,
            rounds_total,
            waiting_for: self.waiting_for(),
            ended: self.run.phase == super::RunPhase::Ended,
        }
    }

    fn waiting_for(&self) -> Vec<(NodeId, String)> {
        let name = |node: bench_core::ids::NodeIndex| self.config.roster[node.usize()].clone();
        let joining = self.run.phase == super::RunPhase::Joining;
        let absent = self.members.absent().filter(|_| joining).map(|node| (name(node), "to join".to_owned()));
        let probing = self.run.probing.iter().map(|node| (name(*node), "inventory".to_owned()));
        let journals = self.run.collecting.keys().map(|node| (name(*node), "journal".to_owned()));
        let keepers = self.run.storing.iter().flat_map(super::store::Storing::waiting);
        let keepers = keepers.map(|node| (name(node), "result kept".to_owned()));
        let rounds = [&self.run.current, &self.run.next]
            .into_iter()
            .flatten()
            .flat_map(ActiveRound::waiting)
            .map(|(node, what)| (name(node), what));
        absent.chain(probing).chain(journals).chain(rounds).chain(keepers).collect()
    }
}
