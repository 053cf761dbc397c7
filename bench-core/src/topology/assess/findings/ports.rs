//! Whether ports are up, at their speed, and served by a subnet manager.

use crate::topology::assess::{Confidence, Finding, PortAssessment, Role, Severity};
use crate::topology::model::{Hca, LinkLayer, NetdevState, PhysicalState, Port, PortState};
use crate::topology::words::count;

use super::{View, finding, listed, place};

pub(super) fn find(view: &View<'_>, found: &mut Vec<Finding>) {
    summary(view, found);
    for (hca, port, assessed) in view.known_ports() {
        let infiniband = port.link_layer == Some(LinkLayer::InfiniBand);
        match &port.state {
            Some(PortState::Down) => found.push(down(hca, port, assessed)),
            Some(PortState::Init) if port.link_layer != Some(LinkLayer::Ethernet) => {
                found.push(no_subnet_manager(hca, port));
            }
            Some(PortState::Init | PortState::Armed | PortState::Other(_)) => {
                found.push(not_active(hca, port))
            }
            Some(PortState::Active) if infiniband => found.extend(without_address(hca, port)),
            Some(PortState::Active) | None => {}
        }
        found.extend(lane_word(hca, port));
    }
    slow(view, found);
    netdevs_down(view, found);
    own_subnet_manager(view, found);
    firmware(view, found);
}

/// How many ports of the compute fabric are up, and how fast they are.
fn summary(view: &View<'_>, found: &mut Vec<Finding>) {
    let compute: Vec<_> =
        view.known_ports().filter(|(_, _, assessed)| assessed.role == Role::Compute).collect();
    let told = compute.iter().filter(|(_, port, _)| port.is_up().is_some()).count();
    if told == 0 {
        return;
    }
    let up = compute.iter().filter(|(_, port, _)| port.is_up() == Some(true)).count();
    let rate =
        compute.iter().filter_map(|(_, port, _)| port.real_rate()).map(|rate| rate.gbps()).reduce(f64::max);
    let layer = compute.iter().find_map(|(_, port, _)| port.link_layer).map_or("", LinkLayer::name);
    let speed = rate.map_or_else(String::new, |rate| format!(" at {rate:.0} Gb/s"));
    let what = format!("{up} of {} of the compute fabric are active{speed} {layer}", count(told, "port"));
    let sure =
        compute.iter().map(|(_, _, assessed)| assessed.confidence).max().unwrap_or(Confidence::Unknown);
    let names = listed(compute.iter().map(|(hca, port, _)| place(hca, port)).collect());
    let why = "what a collective can use";
    found.push(finding("compute_ports", Severity::Info, sure, names, what.trim_end(), why));
}

fn down(hca: &Hca, port: &Port, assessed: &PortAssessment) -> Finding {
    let cause = match &port.physical {
        Some(PhysicalState::Disabled) => {
            "disabled: switched off by the administrator or the firmware".to_owned()
        }
        Some(PhysicalState::Polling) => {
            "polling: no cable, or nothing that answers at its other end".to_owned()
        }
        Some(PhysicalState::LinkUp) => "though its physical link is up".to_owned(),
        Some(PhysicalState::Other(state)) => format!("physical state {state}"),
        None => "physical state not shown".to_owned(),
    };
    let placeholder = port.rate.map_or_else(String::new, |rate| {
        format!("; the rate {:.0} Gb/s beside it is a placeholder, no speed", rate.gbps())
    });
    let what = format!("the port is down, {cause}{placeholder}");
    let (severity, why) = match assessed.role {
        Role::Compute => (Severity::Fail, "a rail of the compute fabric is missing"),
        Role::Storage | Role::FrontEnd | Role::StorageOrFrontEnd => (
            Severity::Info,
            "it is no rail of the compute fabric: a spare port, unless it should carry something",
        ),
        Role::Unknown => (Severity::Warn, "what the port is for is not known"),
    };
    let remedy = match (&port.physical, severity) {
        (_, Severity::Info) => None,
        (Some(PhysicalState::Disabled), _) => {
            let enable = match (port.link_layer, &port.netdev) {
                (Some(LinkLayer::InfiniBand), _) => {
                    "ibportstate LID PORT enable, on the switch's side".to_owned()
                }
                (Some(LinkLayer::Ethernet) | None, Some(netdev)) => format!("ip link set {netdev} up"),
                (Some(LinkLayer::Ethernet) | None, None) => {
                    "ip link set DEVICE up for its network device".to_owned()
                }
            };
            Some(format!("{enable}; if it stays disabled, mlxlink -d {} shows why", hca.title()))
        }
        (Some(PhysicalState::Polling), _) => {
            Some("check cable, transceiver and the switch's port".to_owned())
        }
        (Some(PhysicalState::LinkUp | PhysicalState::Other(_)) | None, _) => {
            Some(format!("mlxlink -d {} shows the state of the link", hca.title()))
        }
    };
    Finding { remedy, ..finding("port_down", severity, sure_of(assessed), place(hca, port), what, why) }
}

/// A port that is down is down; how much that matters is as sure as its role.
fn sure_of(assessed: &PortAssessment) -> Confidence {
    match assessed.confidence {
        Confidence::Unknown => Confidence::Assumed,
        Confidence::Assumed | Confidence::Likely | Confidence::Proven => assessed.confidence,
    }
}

fn no_subnet_manager(hca: &Hca, port: &Port) -> Finding {
    let mut signs = vec!["state INIT".to_owned()];
    signs.extend(port.sm_lid.filter(|lid| *lid == 0).map(|_| "subnet manager's LID 0".to_owned()));
    signs.extend(port.lid.filter(|lid| !is_lid(*lid)).map(|lid| format!("LID {lid}")));
    let sure = if port.sm_lid == Some(0) { Confidence::Proven } else { Confidence::Likely };
    let what = format!("no subnet manager has configured the port ({})", signs.join(", "));
    let why = "the link itself is up, so cable and switch are sound; without a LID nothing can be sent";
    finding("no_subnet_manager", Severity::Fail, sure, place(hca, port), what, why).with_remedy(
        "start or repair the subnet manager (opensm, UFM, or the switch's own); sminfo asks for it",
    )
}

fn not_active(hca: &Hca, port: &Port) -> Finding {
    let state = port.state.as_ref().map_or("unknown", PortState::name);
    let what = format!("the port is not active: {state}");
    finding(
        "port_not_active",
        Severity::Warn,
        Confidence::Proven,
        place(hca, port),
        what,
        "it carries no traffic yet",
    )
    .with_remedy("look again; if it stays so, look at the subnet manager's log")
}

/// Whether a LID is one that a unicast packet can be sent to.
fn is_lid(lid: u32) -> bool {
    lid != 0 && lid < 0xc000
}

fn without_address(hca: &Hca, port: &Port) -> Option<Finding> {
    let mut signs = Vec::new();
    signs.extend(port.lid.filter(|lid| !is_lid(*lid)).map(|lid| format!("its LID is {lid}")));
    signs.extend(port.sm_lid.filter(|lid| *lid == 0).map(|_| "its subnet manager's LID is 0".to_owned()));
    if signs.is_empty() {
        return None;
    }
    let what = format!("the InfiniBand port is active, but {}", signs.join(" and "));
    let why = "packets find neither this port nor the subnet manager";
    let found = finding("no_lid", Severity::Fail, Confidence::Likely, place(hca, port), what, why);
    Some(found.with_remedy("check the subnet manager; sminfo and saquery ask it"))
}

/// Tools name the speed of one lane by InfiniBand's generations, on Ethernet as well.
fn lane_word(hca: &Hca, port: &Port) -> Option<Finding> {
    let lanes = port.lanes.as_deref()?;
    let speed = lanes.split_whitespace().nth(1)?;
    if port.link_layer != Some(LinkLayer::Ethernet) || !lanes.starts_with("1X") {
        return None;
    }
    let rate = port.rate.map_or_else(String::new, |rate| format!("{:.0} Gb/s ", rate.gbps()));
    let what = format!("{rate}Ethernet on one lane; {speed} is only the lane's speed");
    let why = "it says nothing of InfiniBand";
    Some(finding("lane_speed_word", Severity::Info, Confidence::Proven, place(hca, port), what, why))
}

/// Ports of the compute fabric that are slower than the others.
fn slow(view: &View<'_>, found: &mut Vec<Finding>) {
    let rates = || {
        let compute = view.known_ports().filter(|(_, _, assessed)| assessed.role == Role::Compute);
        compute.filter_map(|(hca, port, _)| Some((hca, port, port.real_rate()?.gbps())))
    };
    let Some(most) = rates().map(|(_, _, rate)| rate).reduce(f64::max) else { return };
    for (hca, port, rate) in rates().filter(|(_, _, rate)| *rate < most) {
        let what = format!("the port runs at {rate:.0} Gb/s, others of the compute fabric at {most:.0}");
        let why = "the slowest rail sets the pace of a collective";
        let found_one = finding("slow_port", Severity::Warn, Confidence::Likely, place(hca, port), what, why);
        found.push(
            found_one
                .with_remedy("check cable and switch port: lanes or speed were negotiated down (mlxlink)"),
        );
    }
}

/// Network devices that are down: over InfiniBand that is IPoIB alone.
fn netdevs_down(view: &View<'_>, found: &mut Vec<Finding>) {
    let mut ipoib = Vec::new();
    for (hca, port, _) in
        view.known_ports().filter(|(_, port, _)| port.netdev_state == Some(NetdevState::Down))
    {
        let netdev = port.netdev.as_deref().unwrap_or("its network device");
        let is_ib = port.link_layer == Some(LinkLayer::InfiniBand)
            || (port.link_layer.is_none() && netdev.starts_with("ib"));
        if is_ib {
            ipoib.push((place(hca, port), netdev.to_owned(), port.state.is_some()));
        } else if port.state.is_none() || port.is_up() == Some(true) {
            let what = format!("{netdev} is down");
            let why = "RoCE needs the network device up: it gives the addresses";
            let found_one =
                finding("netdev_down", Severity::Warn, Confidence::Likely, place(hca, port), what, why);
            found.push(found_one.with_remedy(format!("ip link set {netdev} up")));
        }
    }
    if ipoib.is_empty() {
        return;
    }
    let states_known = ipoib.iter().all(|(_, _, known)| *known);
    let places = listed(ipoib.iter().map(|(place, _, _)| place.clone()).collect());
    let netdevs = listed(ipoib.iter().map(|(_, netdev, _)| netdev.clone()).collect());
    let what = format!("the IPoIB network devices {netdevs} are down");
    let why = "no failure of the fabric by itself: verbs don't need IPoIB, and the ports may be active all the same; only IP over InfiniBand is off";
    let ask = if states_known { "" } else { "ibstat tells the ports' state; " };
    let remedy = format!("{ask}ip link set DEVICE up, where IP over InfiniBand is wanted");
    found.push(
        finding("ipoib_down", Severity::Info, Confidence::Likely, places, what, why).with_remedy(remedy),
    );
}

fn own_subnet_manager(view: &View<'_>, found: &mut Vec<Finding>) {
    for (hca, port, _) in view.known_ports() {
        if let (Some(lid), Some(sm)) = (port.lid, port.sm_lid)
            && lid == sm
            && is_lid(lid)
        {
            let what = format!("the subnet manager has this port's own LID {lid}: it runs on this node");
            let why = "the fabric depends on this node";
            found.push(finding(
                "own_subnet_manager",
                Severity::Info,
                Confidence::Likely,
                place(hca, port),
                what,
                why,
            ));
        }
    }
}

/// Firmware that differs among the HCAs of one model in the compute fabric.
fn firmware(view: &View<'_>, found: &mut Vec<Finding>) {
    let mut versions: std::collections::BTreeMap<(&str, &str), Vec<String>> =
        std::collections::BTreeMap::new();
    for (hca, _, _) in view.known_ports().filter(|(_, _, assessed)| assessed.role == Role::Compute) {
        if let (Some(model), Some(version)) = (&hca.model, &hca.firmware) {
            versions.entry((model, version)).or_default().push(hca.title().to_owned());
        }
    }
    let models: std::collections::BTreeSet<&str> = versions.keys().map(|(model, _)| *model).collect();
    for model in models {
        let of: Vec<_> = versions.iter().filter(|((other, _), _)| *other == model).collect();
        if of.len() > 1 {
            let parts: Vec<String> = of
                .iter()
                .map(|((_, version), names)| format!("{version} on {}", listed((*names).clone())))
                .collect();
            let what = format!("{model} with different firmware: {}", parts.join("; "));
            let why = "rails behave alike only with the same firmware";
            let place = listed(of.iter().flat_map(|(_, names)| (*names).clone()).collect());
            found.push(
                finding("mixed_firmware", Severity::Warn, Confidence::Proven, place, what, why)
                    .with_remedy("bring them to one version"),
            );
        }
    }
}
