//! A round's start is sent and obeyed only after its mark is on a majority of the electors, and an agent runs a mark
//! at most once.

use std::collections::BTreeSet;

use super::Report;
use crate::facts::{Fact, Facts};

pub(super) fn check(facts: &Facts, report: &mut Report) {
    let mut marked = BTreeSet::new();
    let mut obeyed = BTreeSet::new();
    for (at, fact) in &facts.list {
        match fact {
            Fact::Marked { key } => {
                marked.insert(*key);
            }
            Fact::StartSent { key } if !marked.contains(key) => {
                report.add(*at, format!("the start of {key:?} was sent without its mark"));
            }
            Fact::StartObeyed { node, key } => {
                if !marked.contains(key) {
                    report.add(*at, format!("node {node} started {key:?} without its mark"));
                }
                if !obeyed.insert((*node, *key)) {
                    report.add(*at, format!("node {node} started {key:?} twice"));
                }
            }
            Fact::StartSent { .. }
            | Fact::Elected { .. }
            | Fact::Obeyed { .. }
            | Fact::Fence { .. }
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
