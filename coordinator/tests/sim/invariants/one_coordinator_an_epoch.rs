//! Two machines are never told the same term: an epoch has one coordinator, elected once.

use std::collections::BTreeMap;

use super::Report;
use crate::facts::{Fact, Facts};

pub(super) fn check(facts: &Facts, report: &mut Report) {
    let mut terms = BTreeMap::new();
    for (at, fact) in &facts.list {
        if let Fact::Elected { node, epoch } = fact
            && let Some(other) = terms.insert(epoch.term, node)
        {
            report.add(*at, format!("nodes {other} and {node} were both elected in term {}", epoch.term));
        }
    }
}
