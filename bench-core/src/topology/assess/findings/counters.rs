//! Error counters as they stand. They count since boot, so only saturated ones tell anything by themselves.

use std::collections::BTreeMap;

use crate::topology::assess::{Confidence, Finding, Severity};

use super::{View, finding, listed, place};

pub(super) fn find(view: &View<'_>, found: &mut Vec<Finding>) {
    let mut counted: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (hca, port, _) in view.known_ports() {
        for (name, value) in &port.counters {
            match width(name).map(|bits| (1_u64 << bits) - 1) {
                Some(most) if *value >= most => {
                    let what =
                        format!("{name} stands at its maximum {most}: many, the true number is not known");
                    let why = "a saturated counter no longer counts, so its difference over a run is no proof of health";
                    let found_one = finding(
                        "counter_saturated",
                        Severity::Info,
                        Confidence::Proven,
                        place(hca, port),
                        what,
                        why,
                    );
                    found.push(
                        found_one
                            .with_remedy(format!("clear it (perfquery -R) and look again: {}", hca.title())),
                    );
                }
                Some(_) | None if *value > 0 && is_error(name) => {
                    counted.entry(name).or_default().push(place(hca, port));
                }
                Some(_) | None => {}
            }
        }
    }
    if counted.is_empty() {
        return;
    }
    let names: Vec<&str> = counted.keys().copied().collect();
    let mut places: Vec<String> = counted.values().flatten().cloned().collect();
    places.sort_unstable();
    places.dedup();
    let what = format!("counters above zero: {}", names.join(", "));
    let why =
        "they count since boot or the last reset: no failure by themselves, only a growth during a run is";
    let found_one =
        finding("counters_since_boot", Severity::Info, Confidence::Proven, listed(places), what, why);
    found.push(found_one.with_remedy("read them before and after a run and compare"));
}

/// Bits of the counters that stop at their maximum (InfiniBand specification, PortCounters).
fn width(name: &str) -> Option<u32> {
    match name {
        "local_link_integrity_errors" | "excessive_buffer_overrun_errors" => Some(4),
        "link_downed"
        | "link_error_recovery"
        | "port_xmit_constraint_errors"
        | "port_rcv_constraint_errors" => Some(8),
        "symbol_error"
        | "port_rcv_errors"
        | "port_rcv_remote_physical_errors"
        | "port_rcv_switch_relay_errors"
        | "port_xmit_discards"
        | "VL15_dropped" => Some(16),
        _ => None,
    }
}

/// Counters of errors, retransmissions and waiting that people take for failures.
fn is_error(name: &str) -> bool {
    width(name).is_some()
        || ["err", "retrans", "out_of_sequence", "timeout", "discards", "port_xmit_wait"]
            .iter()
            .any(|part| name.contains(part))
}
