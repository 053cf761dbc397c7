//! How an elector without state decides what it is: a founder of the mesh, or one that has to be taken in.
//!
//! Founding needs no consensus, only that nobody votes twice. All electors derive the same voters from the roster, all
//! with incarnation 0. A process may use its incarnation 0 if it founds the mesh itself, having heard that every
//! elector (or, after the join timeout, a majority) is as empty as itself, or if one that did so had heard exactly this
//! process: in both cases this process has never voted, and it has its state from then on. Any other empty elector may
//! have voted before, so it takes a new incarnation and is mute until the leader has put that in the old one's place.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_core::ids::{BootId, NodeIndex};
use bench_core::message::{CommandView, Standing};

use super::store::Identity;
use super::types::ElectorId;
use super::wire::{Attendance, Surroundings};

/// An elector that has no state.
#[derive(Clone, Debug)]
pub(super) struct Empty {
    /// Its position.
    pub(super) me: NodeIndex,
    /// Its process.
    pub(super) boot: BootId,
    /// All electors, itself included.
    pub(super) electors: Vec<NodeIndex>,
    /// What happened to its state.
    pub(super) past: Past,
    /// Who must be there.
    pub(super) quorum: Quorum,
    /// How long it waits for electors that it does not hear.
    pub(super) join_timeout: Duration,
}

/// Who must be there before a mesh is founded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// All electors, or a majority of them after the join timeout: the roster is known beforehand.
    Majority,
    /// Every node of the roster, however long that takes: being connected with all of them is the proof that they have
    /// the same roster.
    Everybody,
}

/// What an elector knows of its own past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// There is no trace of one.
    Unknown,
    /// It had state, and lost it.
    Lost,
}

/// What an elector without state does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It founds the mesh, or joins those who do.
    Found(Identity),
    /// It takes a new life and asks to be taken in.
    Ask(Identity),
    /// It looks around again.
    Wait,
}

impl Empty {
    /// What to do after `waited`, hearing this.
    pub(super) fn decide(&self, around: &Surroundings, waited: Duration) -> Step {
        let others: BTreeMap<NodeIndex, &CommandView> = around
            .electors
            .iter()
            .filter(|(elector, _)| **elector != self.me && self.electors.contains(elector))
            .map(|(elector, view)| (*elector, view))
            .collect();
        let founders: Vec<&Vec<BootId>> = others
            .values()
            .filter_map(|view| match &view.standing {
                Standing::Voter { founders } => Some(founders),
                Standing::NoElector | Standing::Empty { .. } | Standing::Mute => None,
            })
            .collect();
        let counted_in = founders.iter().find(|founders| founders.contains(&self.boot));
        match (self.past, counted_in) {
            (Past::Lost, _) => return Step::Ask(self.anew()),
            (Past::Unknown, Some(founders)) => return Step::Found(self.founder((*founders).clone())),
            (Past::Unknown, None) => {}
        }
        let mute = others.values().any(|view| view.standing == Standing::Mute);
        if around.seen.is_some() || !founders.is_empty() || mute {
            return Step::Ask(self.anew());
        }
        let heard = others.len() + 1;
        let enough = match self.quorum {
            Quorum::Majority => {
                let degraded = waited >= self.join_timeout && heard > self.electors.len() / 2;
                heard == self.electors.len() || degraded
            }
            Quorum::Everybody => heard == self.electors.len() && around.attendance == Attendance::Full,
        };
        if enough {
            let mut boots: Vec<BootId> = others.values().filter_map(|view| boot_of(view)).collect();
            boots.push(self.boot);
            return Step::Found(self.founder(boots));
        }
        Step::Wait
    }

    fn founder(&self, founders: Vec<BootId>) -> Identity {
        Identity { id: ElectorId::founder(self.me), founders }
    }

    /// A new life, named after this process, of which there is only one.
    fn anew(&self) -> Identity {
        let BootId([a, b, c, d, e, f, ..]) = self.boot;
        // Above 1, which stands for nobody.
        let incarnation = u64::from_be_bytes([0, 0, a, b, c, d, e, f]).max(2);
        Identity { id: ElectorId { elector: self.me.0, incarnation }, founders: Vec::new() }
    }
}

fn boot_of(view: &CommandView) -> Option<BootId> {
    match view.standing {
        Standing::Empty { boot } => Some(boot),
        Standing::NoElector | Standing::Mute | Standing::Voter { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use bench_core::ids::Epoch;

    use super::*;

    const BOOT: BootId = BootId([1; 16]);

    fn empty(past: Past) -> Empty {
        Empty {
            me: NodeIndex(1),
            boot: BOOT,
            electors: (0..3).map(NodeIndex).collect(),
            past,
            quorum: Quorum::Majority,
            join_timeout: Duration::from_secs(30),
        }
    }

    fn around(views: &[(u16, Standing)], seen: Option<Epoch>) -> Surroundings {
        let view =
            |standing: &Standing| CommandView { seen: None, commander: None, standing: standing.clone() };
        let electors = views.iter().map(|(n, s)| (NodeIndex(*n), view(s))).collect();
        Surroundings { electors, seen, attendance: Attendance::Partial }
    }

    fn fresh(boot: u8) -> Standing {
        Standing::Empty { boot: BootId([boot; 16]) }
    }

    const SOON: Duration = Duration::from_secs(1);
    const LATE: Duration = Duration::from_secs(31);

    #[test]
    fn electors_that_all_hear_each_other_empty_found_the_mesh() {
        let step = empty(Past::Unknown).decide(&around(&[(0, fresh(7)), (2, fresh(9))], None), SOON);
        let Step::Found(identity) = step else { panic!("founds, not {step:?}") };
        assert_eq!(identity.id, ElectorId::founder(NodeIndex(1)));
        assert_eq!(identity.founders, [BootId([7; 16]), BootId([9; 16]), BOOT]);
    }

    #[test]
    fn a_majority_founds_after_the_join_timeout_and_a_minority_never() {
        let one = around(&[(0, fresh(7))], None);
        assert_eq!(empty(Past::Unknown).decide(&one, SOON), Step::Wait);
        assert!(matches!(empty(Past::Unknown).decide(&one, LATE), Step::Found(_)));
        assert_eq!(empty(Past::Unknown).decide(&around(&[], None), LATE), Step::Wait);
    }

    #[test]
    fn a_set_that_has_to_be_confirmed_is_founded_by_nobody_before_every_node_is_there() {
        let empty = Empty { quorum: Quorum::Everybody, ..empty(Past::Unknown) };
        let mut all = around(&[(0, fresh(7)), (2, fresh(9))], None);
        assert_eq!(empty.decide(&all, LATE), Step::Wait, "a node that is no elector is missing");
        let majority = Surroundings { attendance: Attendance::Full, ..around(&[(0, fresh(7))], None) };
        assert_eq!(empty.decide(&majority, LATE), Step::Wait);
        all.attendance = Attendance::Full;
        assert!(matches!(empty.decide(&all, SOON), Step::Found(_)));
        // Whoever had everybody there vouches for the others.
        let founded = Standing::Voter { founders: vec![BootId([7; 16]), BOOT] };
        let counted = around(&[(0, founded)], None);
        assert!(matches!(empty.decide(&counted, SOON), Step::Found(_)));
    }

    #[test]
    fn whom_a_founder_had_heard_is_a_founder_and_another_process_is_not() {
        let founded = |boot| Standing::Voter { founders: vec![BootId([7; 16]), boot] };
        let heard = around(&[(0, founded(BOOT))], Some(Epoch { term: 1, elector: 0 }));
        assert!(matches!(empty(Past::Unknown).decide(&heard, SOON), Step::Found(_)));
        let unheard = around(&[(0, founded(BootId([8; 16])))], None);
        assert!(matches!(empty(Past::Unknown).decide(&unheard, SOON), Step::Ask(_)));
    }

    #[test]
    fn who_lost_its_state_or_meets_anyone_who_saw_an_epoch_is_mute() {
        let all_fresh = around(&[(0, fresh(7)), (2, fresh(9))], None);
        assert!(matches!(empty(Past::Lost).decide(&all_fresh, SOON), Step::Ask(_)));
        let seen = around(&[(0, fresh(7)), (2, fresh(9))], Some(Epoch { term: 4, elector: 0 }));
        let step = empty(Past::Unknown).decide(&seen, SOON);
        assert!(matches!(&step, Step::Ask(identity) if identity.id.incarnation != 0), "{step:?}");
    }
}
