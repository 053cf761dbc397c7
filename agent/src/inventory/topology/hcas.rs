//! RDMA devices and their ports.

use std::path::Path;

use bench_core::topology::{
    Function, Gid, Inventory, LinkLayer, NetdevState, PciAddress, PhysicalState, Port, PortState,
};
use bench_core::units::BitsPerSecond;

use super::files::Tree;
use super::pci;
use crate::inventory::rails::default_route_device;

/// Reads every RDMA device of `sys/class/infiniband`.
pub(super) fn read(tree: &Tree, root: &Path, inventory: &mut Inventory) {
    let default_route = default_route_device(root);
    for name in tree.list(CLASS) {
        let Some(id) = inventory.hca_named(&name) else { continue };
        let folder = format!("{CLASS}/{name}");
        let text = |file: &str| tree.text(&format!("{folder}/{file}"));
        let guid = |file: &str| {
            text(file).map(|text| text.chars().filter(char::is_ascii_hexdigit).collect::<String>())
        };
        let pci_folder = tree.link_name(&format!("{folder}/device"));
        let netdevs = tree.list(&format!("{folder}/device/net"));
        let ports = tree.list(&format!("{folder}/ports"));
        let hca = inventory.hca_mut(id);
        hca.bus = pci_folder.as_deref().and_then(PciAddress::parse);
        hca.path = pci_folder.as_deref().and_then(|folder| pci::path(tree, folder));
        hca.numa = tree.number(&format!("{folder}/device/numa_node"));
        hca.driver = tree.link_name(&format!("{folder}/device/driver"));
        hca.model = text("hca_type");
        hca.board = text("board_id");
        hca.firmware = text("fw_ver");
        hca.node_guid = guid("node_guid");
        hca.system_guid = guid("sys_image_guid");
        hca.function = hca.bus.map(|_| match tree.exists(&format!("{folder}/device/physfn")) {
            true => Function::Virtual,
            false => Function::Physical,
        });
        hca.port_count = u16::try_from(ports.len()).ok();
        for number in ports.iter().filter_map(|port| port.parse().ok()) {
            let Some(port) = hca.port_mut(number) else { continue };
            read_port(tree, &format!("{folder}/ports/{number}"), port);
            port.netdev = netdev(tree, &folder, &netdevs, number);
            of_netdev(tree, default_route.as_deref(), port);
        }
    }
}

fn read_port(tree: &Tree, folder: &str, port: &mut Port) {
    let text = |file: &str| tree.text(&format!("{folder}/{file}"));
    let number = |file: &str| {
        let text = text(file)?;
        u32::from_str_radix(text.trim_start_matches("0x"), 16).ok()
    };
    port.link_layer = text("link_layer").and_then(|word| LinkLayer::parse(&word));
    port.state = text("state").map(|state| PortState::parse(&state));
    port.physical = text("phys_state").map(|state| PhysicalState::parse(&state));
    port.lid = number("lid");
    port.sm_lid = number("sm_lid");
    if let Some(rate) = text("rate") {
        let gigabits = rate.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
        port.rate = gigabits.filter(|rate| *rate > 0.0).map(|rate| BitsPerSecond(rate * 1e9));
        port.lanes = rate.split_once('(').map(|(_, lanes)| lanes.trim_end_matches(')').to_owned());
    }
    for kind in ["counters", "hw_counters"] {
        for name in tree.list(&format!("{folder}/{kind}")) {
            if let Some(value) = text(&format!("{kind}/{name}")).and_then(|value| value.parse().ok()) {
                port.add_counter(&name, value);
            }
        }
    }
    gids(tree, folder, port);
}

/// The GIDs that are set. Reading an empty place gives zeros or an error, by the driver.
fn gids(tree: &Tree, folder: &str, port: &mut Port) {
    for index in tree.list(&format!("{folder}/gids")).iter().filter_map(|index| index.parse::<u16>().ok()) {
        let Some(gid) = tree.text(&format!("{folder}/gids/{index}")) else { continue };
        if !gid.bytes().any(|b| b != b'0' && b != b':') {
            continue;
        }
        let kind = tree.text(&format!("{folder}/gid_attrs/types/{index}")).unwrap_or_default();
        let version = match kind.as_str() {
            "RoCE v2" => Some("v2".to_owned()),
            "IB/RoCE v1" if port.link_layer == Some(LinkLayer::Ethernet) => Some("v1".to_owned()),
            _ => None,
        };
        port.add_gid(Gid { index, ipv4: ipv4(&gid), gid, version });
    }
}

/// The IPv4 address in `0000:0000:0000:0000:0000:ffff:0a00:0001`.
fn ipv4(gid: &str) -> Option<String> {
    gid.parse::<std::net::Ipv6Addr>().ok()?.to_ipv4_mapped().map(|address| address.to_string())
}

/// The network device of a port: the kernel numbers them from 0 in `dev_port`.
fn netdev(tree: &Tree, folder: &str, netdevs: &[String], port: u16) -> Option<String> {
    match netdevs {
        [] => software_netdev(tree, folder, port),
        [only] => Some(only.clone()),
        several => {
            let of =
                |name: &&String| tree.number(&format!("{folder}/device/net/{name}/dev_port")).map(|n| n + 1);
            several.iter().find(|name| of(name) == Some(u32::from(port))).cloned()
        }
    }
}

/// The same of a device without hardware (rxe, siw), which has no `device`: its GIDs name it, also where it was renamed
/// since; rxe tells the name at its making in `parent`.
fn software_netdev(tree: &Tree, folder: &str, port: u16) -> Option<String> {
    let gids = format!("{folder}/ports/{port}/gid_attrs/ndevs");
    let of_gid = tree.list(&gids).iter().find_map(|index| tree.text(&format!("{gids}/{index}")));
    of_gid.or_else(|| tree.text(&format!("{folder}/parent")))
}

fn of_netdev(tree: &Tree, default_route: Option<&str>, port: &mut Port) {
    let Some(netdev) = port.netdev.as_deref() else { return };
    let folder = format!("sys/class/net/{netdev}");
    port.netdev_state = tree.text(&format!("{folder}/operstate")).and_then(|state| match state.as_str() {
        "up" => Some(NetdevState::Up),
        "down" | "lowerlayerdown" => Some(NetdevState::Down),
        _ => None,
    });
    port.bond = tree
        .link_name(&format!("{folder}/master"))
        .filter(|master| tree.exists(&format!("sys/class/net/{master}/bonding")));
    port.default_route =
        default_route == Some(netdev) || (default_route.is_some() && default_route == port.bond.as_deref());
}

/// Where the kernel lists RDMA devices.
const CLASS: &str = "sys/class/infiniband";
