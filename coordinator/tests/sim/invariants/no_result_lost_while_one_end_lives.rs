//! What was measured is in the result as long as the journal of an end that measured it is there to be read: for every
//! node that the last coordinator reached from before its election to the end, each observation that the node had
//! journaled before that epoch is among the records.
//!
//! Retests of earlier epochs are the exception that the design makes: they are measured again. A run that was stopped
//! leaves what is under way in the journals.

use std::collections::BTreeSet;

use bench_core::record::{RunEnd, RunRecord};
use bench_core::schedule::Schedule;
use bench_core::time::Mono;

use super::Report;
use crate::facts::{Fact, Facts};

pub(super) fn check(facts: &Facts, report: &mut Report) {
    let Some((RunRecord::Ended(RunEnd::Completed), records)) = facts.result.split_last() else {
        return;
    };
    let Some(RunRecord::Started(start)) = records.iter().rev().find(|r| matches!(r, RunRecord::Started(_)))
    else {
        return;
    };
    let Ok(schedule) = Schedule::of_run(start) else {
        return;
    };
    let elected = facts
        .list
        .iter()
        .rev()
        .find(|(_, fact)| matches!(fact, Fact::Elected { epoch, .. } if *epoch == start.epoch));
    let Some((began, Fact::Elected { node: coordinator, .. })) = elected else {
        return;
    };
    let members = steady_members(facts, *coordinator, *began);
    let observed = records.iter().filter_map(|record| match record {
        RunRecord::Observed(observation) => Some(observation.key),
        RunRecord::Started(_)
        | RunRecord::Round(_)
        | RunRecord::Lost(_)
        | RunRecord::Added(_)
        | RunRecord::Note(_)
        | RunRecord::Ended(_) => None,
    });
    let observed: BTreeSet<_> = observed.collect();
    for (at, fact) in facts.list.iter().filter(|(at, _)| at < began) {
        if let Fact::Journaled { node, observation } = fact
            && members.contains(node)
            && observation.key.cell.0 < schedule.cells()
            && facts.journals[node].contains(observation)
            && !observed.contains(&observation.key)
        {
            report.add(*at, format!("{:?} of node {node} is not in the result", observation.key));
        }
    }
}

/// Nodes that the coordinator of the epoch reached from before its election to the end, over a network without faults.
fn steady_members(facts: &Facts, coordinator: usize, began: Mono) -> BTreeSet<usize> {
    let mut members = BTreeSet::new();
    let mut whole = true;
    for (at, fact) in &facts.list {
        match fact {
            Fact::Joined { elector, node } if *elector == coordinator && *at < began => {
                members.insert(*node);
            }
            Fact::Left { elector, node } if *elector == coordinator => {
                members.remove(node);
            }
            Fact::Restarted { node } if *node == coordinator => members.clear(),
            Fact::Away { node } | Fact::Restarted { node } | Fact::Lost { node } => {
                members.remove(node);
            }
            Fact::Network { whole: now } => {
                whole = *now;
                if *at > began && !whole {
                    return BTreeSet::new();
                }
            }
            Fact::Elected { node, .. } if *at == began && *node == coordinator && !whole => {
                return BTreeSet::new();
            }
            Fact::Joined { .. }
            | Fact::Left { .. }
            | Fact::Elected { .. }
            | Fact::Obeyed { .. }
            | Fact::Fence { .. }
            | Fact::StartSent { .. }
            | Fact::StartObeyed { .. }
            | Fact::Marked { .. }
            | Fact::Ended { .. }
            | Fact::Journaled { .. } => {}
        }
    }
    members
}
