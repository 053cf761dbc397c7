//! The compute ports of the RDMA devices, in the order of the GPUs that they serve.

use bench_core::node::{RailGpu, RailHca};
use bench_core::topology::{Assessment, Confidence, HcaId, Pairing, Port, PortAssessment, Role, assess};

use super::order::{self, Candidate};
use super::{Interface, Site, Taken};

/// Every port that is for the compute fabric; where none is known to be, those of which nothing is known. A port that is
/// down stays a rail: its cells fail and name it, where leaving it out would number the others anew.
pub(super) fn choose(site: &Site) -> Vec<Taken> {
    let assessment = assess(&site.topology);
    let of = |role: Role| assessment.ports.iter().filter(|port| port.role == role).collect::<Vec<_>>();
    let (compute, unknown) = (of(Role::Compute), of(Role::Unknown));
    let ports = if compute.is_empty() { unknown } else { compute };
    let mut rails = Vec::new();
    for hca in by_gpu(&assessment) {
        let own = ports.iter().filter(|port| port.hca == hca);
        rails.extend(own.filter_map(|port| taken(site, &assessment, port, pair_of(&assessment, hca))));
    }
    let known: Vec<HcaId> = by_gpu(&assessment);
    let others = ports.iter().filter(|port| !known.contains(&port.hca));
    let others = others.filter_map(|port| {
        let taken = taken(site, &assessment, port, None)?;
        let bus = site.topology.hca(port.hca).bus;
        Some(Candidate { network: taken.interface.as_ref().map(Interface::network), bus, taken })
    });
    rails.extend(order::sorted(others.collect()));
    rails
}

/// The GPU that an RDMA device serves; of several, the first.
pub(super) fn gpu_of(site: &Site, device: &str) -> Option<RailGpu> {
    let assessment = assess(&site.topology);
    let serves =
        |pair: &&Pairing| pair.hca.is_some_and(|hca| site.topology.hca(hca).name.as_deref() == Some(device));
    assessment.pairs.iter().find(serves).map(|pair| gpu(site, pair))
}

/// The RDMA port behind a network device, if there is one.
pub(super) fn owner_of(site: &Site, netdev: &str) -> Option<RailHca> {
    site.topology.hcas.iter().find_map(|hca| {
        let owns = |port: &&Port| [&port.netdev, &port.bond].contains(&&Some(netdev.to_owned()));
        let port = hca.ports.iter().find(owns)?;
        Some(RailHca {
            device: hca.name.clone()?,
            port: u8::try_from(port.number).ok()?,
            link_layer: port.link_layer,
        })
    })
}

/// The network device of a port and the address that a rail would use on it.
pub(super) fn netdev_of(site: &Site, port: &Port) -> (Option<String>, Option<Interface>) {
    // The address of a bonded port is the bond's.
    let device = port.bond.as_ref().or(port.netdev.as_ref());
    let interface = device.and_then(|device| site.address_of(device)).cloned();
    (device.cloned(), interface)
}

/// The HCAs that serve GPUs, in GPU order, each once.
fn by_gpu(assessment: &Assessment) -> Vec<HcaId> {
    let mut hcas = Vec::new();
    for hca in assessment.pairs.iter().filter_map(|pair| pair.hca) {
        if !hcas.contains(&hca) {
            hcas.push(hca);
        }
    }
    hcas
}

fn pair_of(assessment: &Assessment, hca: HcaId) -> Option<&Pairing> {
    assessment.pairs.iter().find(|pair| pair.hca == Some(hca))
}

fn taken(
    site: &Site,
    assessment: &Assessment,
    port: &PortAssessment,
    pair: Option<&Pairing>,
) -> Option<Taken> {
    let hca = site.topology.hca(port.hca);
    let name = hca.name.clone()?;
    let known = hca.ports.iter().find(|known| Some(known.number) == port.port)?;
    let (netdev, interface) = netdev_of(site, known);
    let reason = match pair {
        Some(pair) => {
            format!("serves {}: {} ({})", users(assessment, site, port.hca), pair.reason, pair.confidence)
        }
        None => format!("{} port: {} ({})", port.role.words(), port.reason, port.confidence),
    };
    Some(Taken {
        device: netdev.unwrap_or_else(|| name.clone()),
        hca: Some(RailHca {
            device: name,
            port: u8::try_from(known.number).ok()?,
            link_layer: known.link_layer,
        }),
        gpu: pair.map(|pair| gpu(site, pair)),
        interface,
        reason,
    })
}

fn users(assessment: &Assessment, site: &Site, hca: HcaId) -> String {
    let labels = assessment.pairs.iter().filter(|pair| pair.hca == Some(hca)).map(|pair| {
        let gpu = site.topology.gpus.iter().find(|gpu| gpu.index == pair.gpu);
        gpu.map_or_else(|| format!("GPU{}", pair.gpu), |gpu| gpu.label.clone())
    });
    labels.collect::<Vec<_>>().join(", ")
}

fn gpu(site: &Site, pair: &Pairing) -> RailGpu {
    let bus = site.topology.gpus.iter().find(|gpu| gpu.index == pair.gpu).and_then(|gpu| gpu.bus);
    RailGpu {
        index: pair.gpu,
        bus: bus.map(|bus| bus.to_string()),
        confidence: pair.confidence.max(Confidence::Assumed),
    }
}
