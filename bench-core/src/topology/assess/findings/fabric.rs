//! Links of the fabric beyond the node, from `iblinkinfo`.

use std::collections::BTreeMap;

use crate::topology::assess::{Confidence, Finding, Severity};
use crate::topology::model::{FabricLink, FabricNode};
use crate::topology::words::count;

use super::{View, finding, listed};

pub(super) fn find(view: &View<'_>, found: &mut Vec<Finding>) {
    let links = &view.inventory.fabric;
    below_the_switch(links, found);
    could_be(links, found);
    adapters_down(links, found);
}

/// The rate of a port of a switch by its model, Gb/s with four lanes.
fn switch_rate(name: &str) -> Option<(&'static str, f64)> {
    let models = [
        ("MSB77", "EDR", 100.0),
        ("MSB78", "EDR", 100.0),
        ("SB77", "EDR", 100.0),
        ("SB78", "EDR", 100.0),
        ("MQM87", "HDR", 200.0),
        ("QM87", "HDR", 200.0),
        ("MQM97", "NDR", 400.0),
        ("QM97", "NDR", 400.0),
        ("Q3400", "XDR", 800.0),
        ("Q3200", "XDR", 800.0),
    ];
    models.iter().find(|(model, _, _)| name.contains(model)).map(|(_, word, rate)| (*word, *rate))
}

/// The generation of InfiniBand and its rate for the signalling rate of a link.
fn generation(rate_gbps: f64) -> Option<(&'static str, f64)> {
    // Signalling rates: 25.78125 a lane is EDR, 53.125 HDR, 106.25 NDR, 212.5 XDR.
    let known = [
        ("FDR", 56.25, 56.0),
        ("EDR", 103.125, 100.0),
        ("HDR", 212.5, 200.0),
        ("NDR", 425.0, 400.0),
        ("XDR", 850.0, 800.0),
    ];
    known.iter().find(|(_, signal, _)| (signal - rate_gbps).abs() < 1.0).map(|(word, _, rate)| (*word, *rate))
}

/// Adapters on a switch that could do more. The switch's own aggregation node is none.
fn below_the_switch(links: &[FabricLink], found: &mut Vec<Finding>) {
    let mut slower: BTreeMap<(&str, &str, String), Vec<String>> = BTreeMap::new();
    let adapters = links.iter().filter(|link| link.local_kind == FabricNode::Adapter);
    for link in adapters.filter(|link| link.lanes == "4X") {
        let remote = link.remote.as_deref().unwrap_or("");
        if let (Some((word, rate)), Some((switch, most))) =
            (generation(link.rate.gbps()), switch_rate(remote))
            && rate < most
        {
            let key = (word, switch, remote.to_owned());
            slower.entry(key).or_default().push(link.local.clone());
        }
    }
    for ((word, switch, remote), names) in slower {
        let what = format!(
            "{} at InfiniBand {word} on an {switch} switch ({remote}): below what the switch can do",
            count(names.len(), "adapter link")
        );
        let why = format!("no fault if the adapters are {word} ones; else the link was negotiated down");
        found.push(
            finding("below_switch_rate", Severity::Warn, Confidence::Likely, listed(names), what, why)
                .with_remedy("ibstat on the node tells the adapter's model; mlxlink what it could do"),
        );
    }
}

/// The tool itself says that a link could be wider or faster.
fn could_be(links: &[FabricLink], found: &mut Vec<Finding>) {
    for link in links.iter().filter(|link| link.could_be.is_some()).take(MAX_LISTED) {
        let what = format!(
            "the link runs at {} {:.0} Gb/s; {}",
            link.lanes,
            link.rate.gbps(),
            link.could_be.as_deref().unwrap_or_default()
        );
        let why = "both ends can do more: cable, transceiver or setting hold it down";
        let place = format!("{} port {}", link.local, link.port);
        found.push(finding("link_could_be_faster", Severity::Warn, Confidence::Proven, place, what, why));
    }
}

fn adapters_down(links: &[FabricLink], found: &mut Vec<Finding>) {
    let adapters = links.iter().filter(|link| link.local_kind == FabricNode::Adapter);
    for link in adapters.filter(|link| link.state.eq_ignore_ascii_case("init")).take(MAX_LISTED) {
        let place = format!("{} port {}", link.local, link.port);
        let what = "the link is up, but no subnet manager has configured it";
        let found_one =
            finding("no_subnet_manager", Severity::Fail, Confidence::Likely, place, what, "cabling is sound");
        found.push(found_one.with_remedy("start or repair the subnet manager"));
    }
}

/// Links of a kind that are listed one by one.
const MAX_LISTED: usize = 64;
