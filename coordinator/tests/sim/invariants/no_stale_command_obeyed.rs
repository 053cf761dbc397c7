//! An agent that has obeyed an epoch never obeys a lower one: not after a restart, not even after it lost its state,
//! since it reads the epoch from a majority of the electors before it obeys anybody.

use std::collections::BTreeMap;

use super::Report;
use crate::facts::{Fact, Facts};

pub(super) fn check(facts: &Facts, report: &mut Report) {
    let mut highest = BTreeMap::new();
    for (at, fact) in &facts.list {
        if let Fact::Obeyed { node, epoch } = fact {
            let known = highest.entry(*node).or_insert(*epoch);
            if epoch < known {
                report.add(*at, format!("node {node} obeyed {epoch} after {known}"));
            }
            *known = (*known).max(*epoch);
        }
    }
}
