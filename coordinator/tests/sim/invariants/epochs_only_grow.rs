//! A node is never elected in an epoch at or below its last one, and its fence never falls while it keeps its state.

use std::collections::BTreeMap;

use super::Report;
use crate::facts::{Fact, Facts};

pub(super) fn check(facts: &Facts, report: &mut Report) {
    let mut elected = BTreeMap::new();
    let mut fences = BTreeMap::new();
    for (at, fact) in &facts.list {
        match fact {
            Fact::Elected { node, epoch } => {
                if elected.insert(*node, *epoch).is_some_and(|last| last >= *epoch) {
                    report.add(
                        *at,
                        format!("node {node} was elected in {epoch} after a higher or equal epoch"),
                    );
                }
            }
            Fact::Fence { node, life, epoch } => {
                if fences.insert((*node, *life), *epoch).is_some_and(|last| last > *epoch) {
                    report.add(*at, format!("the fence of node {node} fell to {epoch}"));
                }
            }
            Fact::Obeyed { .. }
            | Fact::StartSent { .. }
            | Fact::StartObeyed { .. }
            | Fact::Marked { .. }
            | Fact::Ended { .. }
            | Fact::Left { .. }
            | Fact::Joined { .. }
            | Fact::Journaled { .. }
            | Fact::Away { .. }
            | Fact::Restarted { .. }
            | Fact::Network { .. }
            | Fact::Lost { .. } => {}
        }
    }
}
