//! Which of this node's addresses are its rails, and why.
//!
//! Named with `--rails`, each is taken as written. Otherwise the choice is made from the interfaces: those that are
//! up, carry a global address and are no software bridges; the one that carries the default route is the front-end
//! and is left out where others remain.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use bench_core::ids::RailId;
use bench_core::node::RailEndpoint;
use thiserror::Error;

/// One address of one network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The device's name.
    pub device: String,
    /// One of its addresses.
    pub addr: IpAddr,
}

/// How the rails of a node are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RailChoice {
    /// From the interfaces, by rule.
    Automatic,
    /// As named: devices or addresses, rail 0 first.
    Named(Vec<String>),
}

/// Why a node has no rails.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RailError {
    /// A named rail is neither a device with an address nor an address of this node.
    #[error(
        "rail {rail}: {name:?} is neither a device with an address nor an address of this node; it has {known}"
    )]
    Unknown {
        /// Which rail.
        rail: RailId,
        /// What was named.
        name: String,
        /// What there is.
        known: String,
    },
    /// Nothing on this node can be a rail.
    #[error(
        "no interface of this node is up with a global address: name the rails with --rails DEVICE,DEVICE or --rails ADDRESS,ADDRESS"
    )]
    Nothing,
}

/// The addresses of this machine's interfaces, as the kernel lists them.
///
/// # Errors
/// The kernel's refusal to list them.
pub fn live_interfaces() -> std::io::Result<Vec<Interface>> {
    let listed = if_addrs::get_if_addrs()?;
    Ok(listed.into_iter().map(|i| Interface { addr: i.ip(), device: i.name }).collect())
}

/// Chooses the rails from `interfaces`, reading device facts below `root`.
///
/// # Errors
/// [`RailError`] if a named rail does not exist here or nothing can be one.
pub fn choose_rails(
    choice: &RailChoice,
    interfaces: &[Interface],
    root: &Path,
) -> Result<Vec<RailEndpoint>, RailError> {
    let chosen = match choice {
        RailChoice::Named(names) => named(names, interfaces)?,
        RailChoice::Automatic => automatic(interfaces, root)?,
    };
    let endpoints = chosen.into_iter().enumerate().map(|(i, (interface, reason))| {
        let facts = DeviceFacts::read(root, &interface.device);
        RailEndpoint {
            rail: RailId(i as u16),
            device: interface.device,
            addr: interface.addr,
            numa: facts.numa,
            line_rate_bps: facts.line_rate_bps,
            mtu: facts.mtu,
            reason,
        }
    });
    Ok(endpoints.collect())
}

fn named(names: &[String], interfaces: &[Interface]) -> Result<Vec<(Interface, String)>, RailError> {
    let find = |(i, name): (usize, &String)| {
        find_named(name, interfaces).ok_or_else(|| RailError::Unknown {
            rail: RailId(i as u16),
            name: name.clone(),
            known: list(interfaces),
        })
    };
    names.iter().enumerate().map(find).collect()
}

fn find_named(name: &str, interfaces: &[Interface]) -> Option<(Interface, String)> {
    if let Ok(addr) = name.parse::<IpAddr>() {
        let exact = interfaces.iter().find(|i| i.addr == addr).cloned();
        // All of 127.0.0.0/8 is this machine's, though only 127.0.0.1 is listed.
        let loopback = || {
            let lo = interfaces.iter().find(|i| i.addr.is_loopback())?;
            addr.is_loopback().then(|| Interface { device: lo.device.clone(), addr })
        };
        return exact.or_else(loopback).map(|i| (i, format!("--rails names the address {addr}")));
    }
    let of_device = interfaces.iter().filter(|i| i.device == name);
    let best = of_device.min_by_key(|i| (is_link_local(i.addr), i.addr.is_ipv6()))?;
    Some((best.clone(), format!("--rails names the device {name}")))
}

fn automatic(interfaces: &[Interface], root: &Path) -> Result<Vec<(Interface, String)>, RailError> {
    let mut by_device: BTreeMap<&str, &Interface> = BTreeMap::new();
    let usable = interfaces.iter().filter(|i| !i.addr.is_loopback() && !is_link_local(i.addr));
    for interface in usable.filter(|i| is_up(root, &i.device) && !is_software(root, &i.device)) {
        let known = by_device.entry(&interface.device).or_insert(interface);
        if known.addr.is_ipv6() && interface.addr.is_ipv4() {
            *known = interface;
        }
    }
    let front_end = default_route_device(root);
    let rails: Vec<&Interface> =
        by_device.values().filter(|i| Some(&i.device) != front_end.as_ref()).copied().collect();
    let taken = |i: &Interface, reason: &str| (i.clone(), format!("{}: {reason}", i.device));
    match (rails.is_empty(), by_device.values().next()) {
        (false, _) => Ok(rails
            .into_iter()
            .map(|i| taken(i, "up, has an address, does not carry the default route"))
            .collect()),
        (true, Some(only)) => Ok(vec![taken(only, "the only interface that is up and has an address")]),
        (true, None) => Err(RailError::Nothing),
    }
}

/// What sysfs says of a device.
struct DeviceFacts {
    numa: Option<u32>,
    line_rate_bps: Option<u64>,
    mtu: Option<u32>,
}

impl DeviceFacts {
    fn read(root: &Path, device: &str) -> Self {
        let number = |file: &str| -> Option<i64> {
            fs::read_to_string(root.join("sys/class/net").join(device).join(file)).ok()?.trim().parse().ok()
        };
        Self {
            // The kernel says -1 where it knows no NUMA node, and -1 Mb/s where a device has no speed.
            numa: number("device/numa_node").and_then(|n| u32::try_from(n).ok()),
            line_rate_bps: line_rate(number("speed"), is_virtual(root, device)),
            mtu: number("mtu").and_then(|n| u32::try_from(n).ok()),
        }
    }
}

/// A virtual device (veth, tun) reports a made-up speed: 10 Gb/s for veth whatever it does.
fn line_rate(megabits: Option<i64>, is_virtual: bool) -> Option<u64> {
    let megabits = u64::try_from(megabits?).ok().filter(|n| *n > 0)?;
    (!is_virtual).then_some(megabits * 1_000_000)
}

fn is_virtual(root: &Path, device: &str) -> bool {
    !root.join("sys/class/net").join(device).join("device").exists()
}

fn is_up(root: &Path, device: &str) -> bool {
    let state = fs::read_to_string(root.join("sys/class/net").join(device).join("operstate"));
    state.is_ok_and(|text| text.trim() == "up" || text.trim() == "unknown")
}

/// Bridges and container networks are never a rail.
fn is_software(root: &Path, device: &str) -> bool {
    let dir = root.join("sys/class/net").join(device);
    dir.join("bridge").exists() || dir.join("tun_flags").exists()
}

/// The device of the IPv4 default route (`/proc/net/route`: destination and mask 00000000).
pub(super) fn default_route_device(root: &Path) -> Option<String> {
    let table = fs::read_to_string(root.join("proc/net/route")).ok()?;
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.get(1) == Some(&"00000000") && fields.get(7) == Some(&"00000000"))
            .then(|| fields[0].to_owned())
    })
}

fn is_link_local(addr: IpAddr) -> bool {
    match addr {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn list(interfaces: &[Interface]) -> String {
    let all: Vec<String> = interfaces.iter().map(|i| format!("{} {}", i.device, i.addr)).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interfaces(list: &[(&str, &str)]) -> Vec<Interface> {
        list.iter()
            .map(|(device, addr)| Interface {
                device: (*device).to_owned(),
                addr: addr.parse().expect("an address"),
            })
            .collect()
    }

    fn tree(devices: &[&str], default_route: Option<&str>) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for device in devices {
            let dir = root.path().join("sys/class/net").join(device);
            fs::create_dir_all(dir.join("device")).expect("made");
            fs::write(dir.join("operstate"), "up\n").expect("written");
            fs::write(dir.join("speed"), "400000\n").expect("written");
            fs::write(dir.join("device/numa_node"), "1\n").expect("written");
        }
        fs::create_dir_all(root.path().join("proc/net")).expect("made");
        let route = default_route.map_or(String::new(), |device| {
            format!("Iface Destination Gateway Flags RefCnt Use Metric Mask\n{device} 00000000 0 0 0 0 0 00000000\n")
        });
        fs::write(root.path().join("proc/net/route"), route).expect("written");
        root
    }

    #[test]
    fn the_front_end_is_left_out_where_others_remain() {
        let root = tree(&["eth0", "rail0", "rail1"], Some("eth0"));
        let all = interfaces(&[
            ("lo", "127.0.0.1"),
            ("eth0", "10.0.0.1"),
            ("rail0", "10.1.0.1"),
            ("rail1", "fd00::1"),
            ("rail1", "10.2.0.1"),
        ]);
        let rails = choose_rails(&RailChoice::Automatic, &all, root.path()).expect("two rails");
        let picked: Vec<String> =
            rails.iter().map(|r| format!("{} {} {}", r.rail, r.device, r.addr)).collect();
        assert_eq!(picked, ["r0 rail0 10.1.0.1", "r1 rail1 10.2.0.1"]);
        assert_eq!((rails[0].numa, rails[0].line_rate_bps), (Some(1), Some(400_000_000_000)));
    }

    #[test]
    fn a_pod_with_one_interface_measures_on_it() {
        let root = tree(&["eth0"], Some("eth0"));
        let rails = choose_rails(&RailChoice::Automatic, &interfaces(&[("eth0", "10.0.0.1")]), root.path());
        assert_eq!(rails.map(|r| r.len()), Ok(1));
    }

    #[test]
    fn a_named_rail_that_is_not_here_is_named_with_what_is() {
        let choice = RailChoice::Named(vec!["eth0".to_owned(), "10.9.9.9".to_owned()]);
        let error = choose_rails(&choice, &interfaces(&[("eth0", "10.0.0.1")]), Path::new("/nonexistent"));
        let text = error.expect_err("10.9.9.9 is not here").to_string();
        assert!(text.contains("r1") && text.contains("10.9.9.9") && text.contains("eth0 10.0.0.1"), "{text}");
    }

    #[test]
    fn any_loopback_address_is_this_machines() {
        let choice = RailChoice::Named(vec!["127.77.3.11".to_owned()]);
        let rails = choose_rails(&choice, &interfaces(&[("lo", "127.0.0.1")]), Path::new("/nonexistent"));
        assert_eq!(rails.expect("a rail")[0].device, "lo");
    }
}
