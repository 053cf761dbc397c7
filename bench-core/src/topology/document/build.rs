//! From an inventory and its conclusions to the contract.

use super::{
    DistanceEntry, FabricLinkEntry, FindingEntry, GidEntry, GpuEntry, HcaEntry, MissingEntry, NvLinkEntry,
    PairEntry, PlatformEntry, PortEntry, RoleEntry, SCHEMA, SourceEntry, TopologyDocument,
};
use crate::topology::assess::{Assessment, Finding, Pairing, PortAssessment};
use crate::topology::model::{
    Device, Distance, FabricLink, FabricNode, Function, Gpu, Hca, Inventory, LinkActivity, NetdevState, Port,
};

pub(super) fn document(inventory: &Inventory, assessment: &Assessment) -> TopologyDocument {
    let platform = &inventory.platform;
    TopologyDocument {
        schema: SCHEMA.to_owned(),
        tree: assessment.tree.name().to_owned(),
        platform: PlatformEntry {
            hypervisor: platform.hypervisor.clone(),
            cpu: platform.cpu.clone(),
            container: platform.container.clone(),
        },
        gpus: inventory.gpus.iter().map(gpu).collect(),
        hcas: inventory.hcas.iter().map(hca).collect(),
        distances: distances(inventory),
        roles: assessment.ports.iter().map(|port| role(inventory, port)).collect(),
        pairs: assessment.pairs.iter().map(|pairing| pair(inventory, pairing)).collect(),
        findings: assessment.findings.iter().map(finding).collect(),
        missing: (assessment.missing.iter())
            .map(|gap| MissingEntry { what: gap.what.clone(), command: gap.command.clone() })
            .collect(),
        fabric_links: inventory.fabric.iter().map(fabric_link).collect(),
        sources: (inventory.captures.iter())
            .map(|note| SourceEntry { command: note.command.clone(), source: note.source.clone() })
            .collect(),
    }
}

fn gpu(gpu: &Gpu) -> GpuEntry {
    let nvlink = |link: &crate::topology::model::NvLink| NvLinkEntry {
        link: link.number,
        active: link.active == LinkActivity::Active,
    };
    GpuEntry {
        index: gpu.index,
        label: gpu.label.clone(),
        name: gpu.name.clone(),
        uuid: gpu.uuid.clone(),
        pci_address: gpu.bus.map(|bus| bus.to_string()),
        numa: gpu.numa.as_ref().map(ToString::to_string),
        cpus: gpu.cpus.as_ref().map(ToString::to_string),
        memory_numa: gpu.memory_numa,
        nvlinks: gpu.nvlinks.iter().map(nvlink).collect(),
        nvlink_fabric: gpu.fabric.clone(),
    }
}

fn hca(hca: &Hca) -> HcaEntry {
    let function = |function: Function| match function {
        Function::Physical => "physical",
        Function::Virtual => "virtual",
    };
    HcaEntry {
        name: hca.name.clone(),
        label: hca.label.clone(),
        pci_address: hca.bus.map(|bus| bus.to_string()),
        numa: hca.numa,
        driver: hca.driver.clone(),
        model: hca.model.clone(),
        board: hca.board.clone(),
        firmware: hca.firmware.clone(),
        node_guid: hca.node_guid.clone(),
        system_guid: hca.system_guid.clone(),
        function: hca.function.map(|f| function(f).to_owned()),
        ports: hca.ports.iter().map(port).collect(),
    }
}

fn port(port: &Port) -> PortEntry {
    let gid = |gid: &crate::topology::model::Gid| GidEntry {
        index: gid.index,
        gid: gid.gid.clone(),
        version: gid.version.clone(),
        ipv4: gid.ipv4.clone(),
    };
    PortEntry {
        port: port.number,
        link_layer: port.link_layer.map(|layer| layer.name().to_owned()),
        rate_gbps: port.rate.map(|rate| rate.gbps()),
        lanes: port.lanes.clone(),
        state: port.state.as_ref().map(|state| state.name().to_owned()),
        physical_state: port.physical.as_ref().map(|state| state.name().to_owned()),
        lid: port.lid,
        sm_lid: port.sm_lid,
        active_mtu_bytes: port.active_mtu,
        gids: port.gids.iter().map(gid).collect(),
        netdev: port.netdev.clone(),
        netdev_up: port.netdev_state.map(|state| state == NetdevState::Up),
        bond: port.bond.clone(),
        counters: port.counters.clone(),
    }
}

fn distances(inventory: &Inventory) -> Vec<DistanceEntry> {
    let name = |device: Device| match device {
        Device::Gpu(index) => format!("gpu:{index}"),
        Device::Hca(id) => format!("hca:{}", id.0),
    };
    let entry = |(a, b, link): (Device, Device, &crate::topology::model::Link)| DistanceEntry {
        a: name(a),
        b: name(b),
        pcie: link.pcie.map(|distance| distance.name().to_owned()),
        nvlinks: link.nvlinks,
        other: link.other.clone(),
    };
    inventory.links.iter().map(entry).collect()
}

fn role(inventory: &Inventory, port: &PortAssessment) -> RoleEntry {
    RoleEntry {
        hca: port.hca.0,
        name: inventory.hca(port.hca).title().to_owned(),
        port: port.port,
        role: port.role.name().to_owned(),
        confidence: port.confidence.name().to_owned(),
        reason: port.reason.clone(),
    }
}

fn pair(inventory: &Inventory, pairing: &Pairing) -> PairEntry {
    PairEntry {
        gpu: pairing.gpu,
        hca: pairing.hca.map(|id| id.0),
        name: pairing.hca.map(|id| inventory.hca(id).title().to_owned()),
        rail: pairing.rail,
        distance: pairing.distance.map(Distance::name).map(str::to_owned),
        alike: pairing.alike.iter().map(|id| id.0).collect(),
        confidence: pairing.confidence.name().to_owned(),
        reason: pairing.reason.clone(),
    }
}

fn finding(finding: &Finding) -> FindingEntry {
    FindingEntry {
        kind: finding.kind.to_owned(),
        severity: finding.severity.name().to_owned(),
        confidence: finding.confidence.name().to_owned(),
        place: finding.place.clone(),
        what: finding.what.clone(),
        why: finding.why.clone(),
        remedy: finding.remedy.clone(),
    }
}

fn fabric_link(link: &FabricLink) -> FabricLinkEntry {
    let kind = match link.local_kind {
        FabricNode::Adapter => "adapter",
        FabricNode::Aggregation => "aggregation",
        FabricNode::Switch => "switch",
    };
    FabricLinkEntry {
        local: link.local.clone(),
        kind: kind.to_owned(),
        port: link.port,
        lanes: link.lanes.clone(),
        rate_gbps: link.rate.gbps(),
        state: link.state.clone(),
        remote: link.remote.clone(),
    }
}
