//! Rails as a person named them.

use std::net::IpAddr;

use bench_core::ids::RailId;
use bench_core::node::RailHca;

use super::hcas::{gpu_of, netdev_of, owner_of};
use super::{Interface, RailError, Site, Taken};

pub(super) fn choose(site: &Site, names: &[String]) -> Result<Vec<Taken>, RailError> {
    let rails = (0..).map(RailId);
    let mut taken: Vec<Taken> = Vec::with_capacity(names.len());
    for (rail, name) in rails.zip(names) {
        let found = find(site, name).ok_or_else(|| RailError::Unknown {
            rail,
            name: name.clone(),
            known: list(site),
        })?;
        let same = |other: &Taken| {
            (&other.hca, &other.device) == (&found.hca, &found.device)
                && other.interface.as_ref().map(|i| i.addr) == found.interface.as_ref().map(|i| i.addr)
        };
        if let Some(first) = taken.iter().position(same) {
            return Err(RailError::Twice { first: RailId(first as u16), second: rail, name: name.clone() });
        }
        taken.push(found);
    }
    Ok(taken)
}

fn find(site: &Site, name: &str) -> Option<Taken> {
    match name.parse::<IpAddr>() {
        Ok(addr) => by_address(site, addr),
        Err(_) => by_hca(site, name).or_else(|| by_netdev(site, name)),
    }
}

fn by_address(site: &Site, addr: IpAddr) -> Option<Taken> {
    let exact = site.interfaces.iter().find(|i| i.addr == addr).cloned();
    // All of 127.0.0.0/8 is this machine's, though only 127.0.0.1 is listed.
    let loopback = || {
        let lo = site.interfaces.iter().find(|i| i.addr.is_loopback())?;
        addr.is_loopback().then(|| Interface { addr, ..lo.clone() })
    };
    let interface = exact.or_else(loopback)?;
    let reason = format!("named by its address {addr}");
    Some(of_netdev(site, interface.device.clone(), Some(interface), reason))
}

fn by_netdev(site: &Site, name: &str) -> Option<Taken> {
    let interface = site.address_of(name)?.clone();
    Some(of_netdev(site, name.to_owned(), Some(interface), format!("named by its device {name}")))
}

/// With the RDMA device of a network device, if it has one.
fn of_netdev(site: &Site, device: String, interface: Option<Interface>, reason: String) -> Taken {
    let hca = owner_of(site, &device);
    let gpu = hca.as_ref().and_then(|hca| gpu_of(site, &hca.device));
    Taken { device, hca, gpu, interface, reason }
}

/// `mlx5_4` or `mlx5_4:2`. Network devices can have a colon in their name too, so the RDMA device must exist.
fn by_hca(site: &Site, name: &str) -> Option<Taken> {
    let (device, number) = match name.rsplit_once(':') {
        Some((device, number)) => (device, number.parse::<u8>().ok()?),
        None => (name, 1),
    };
    let hca = site.topology.hcas.iter().find(|hca| hca.name.as_deref() == Some(device))?;
    let port = hca.ports.iter().find(|port| port.number == u16::from(number))?;
    let (netdev, interface) = netdev_of(site, port);
    Some(Taken {
        device: netdev.unwrap_or_else(|| device.to_owned()),
        hca: Some(RailHca { device: device.to_owned(), port: number, link_layer: port.link_layer }),
        gpu: gpu_of(site, device),
        interface,
        reason: format!("named by its RDMA device {name}"),
    })
}

fn list(site: &Site) -> String {
    let hcas = site.topology.hcas.iter().filter_map(|hca| hca.name.clone());
    let interfaces = site.interfaces.iter().map(|i| format!("{} {}", i.device, i.addr));
    let all: Vec<String> = hcas.chain(interfaces).collect();
    if all.is_empty() { "nothing of the kind".to_owned() } else { all.join(", ") }
}
