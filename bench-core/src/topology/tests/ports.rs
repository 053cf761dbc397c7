//! Ports, GIDs, links of the fabric, access control, topology files.

use super::super::{Confidence, FabricNode, LinkLayer, Severity, nccl_xml};
use super::{pairs, read, roles, severity, worst};

/// An adapter as `ibstat` prints it.
fn ibstat(name: &str, model: &str, state: &str, rate: u32, layer: &str) -> String {
    let (state, physical) = state.split_once('/').unwrap();
    let lid = if layer == "InfiniBand" { 7 } else { 0 };
    format!(
        "CA '{name}'\n\tCA type: {model}\n\tNumber of ports: 1\n\tFirmware version: 28.1\n\tNode GUID: 0x{name:0>16}\n\tPort 1:\n\t\tState: {state}\n\t\tPhysical state: {physical}\n\t\tRate: {rate}\n\t\tBase lid: {lid}\n\t\tLMC: 0\n\t\tSM lid: {lid}2\n\t\tCapability mask: 0x0\n\t\tPort GUID: 0x1\n\t\tLink layer: {layer}\n"
    )
}

const UP: &str = "Active/LinkUp";

#[test]
fn the_fastest_and_largest_group_is_the_compute_fabric() {
    let text = [
        ibstat("mlx5_0", "MT4129", UP, 400, "InfiniBand"),
        ibstat("mlx5_1", "MT4125", "Down/Disabled", 40, "Ethernet"),
        ibstat("mlx5_2", "MT4129", UP, 400, "InfiniBand"),
        ibstat("mlx5_9", "MT4125", UP, 100, "Ethernet"),
    ]
    .concat();
    let (inventory, assessment) = read(&text);
    let expected = [
        "mlx5_0=compute/likely",
        "mlx5_1=front_end/likely",
        "mlx5_2=compute/likely",
        "mlx5_9=front_end/likely",
    ];
    assert_eq!(roles(&inventory, &assessment), expected);
    assert_eq!(worst(&assessment), Some(Severity::Info), "a spare port that is down is no fault");
    let up = assessment.findings.iter().find(|finding| finding.kind == "compute_ports").unwrap();
    assert_eq!(up.what, "2 of 2 ports of the compute fabric are active at 400 Gb/s InfiniBand");
    let restrict = assessment.findings.iter().find(|finding| finding.kind == "restrict_hcas").unwrap();
    assert!(restrict.remedy.as_ref().unwrap().contains("NCCL_IB_HCA==mlx5_0,mlx5_2 "));
    assert!(!restrict.what.contains("mlx5_1"), "a port that is down takes no traffic: {}", restrict.what);
}

#[test]
fn a_rail_that_is_down_fails_with_its_name_and_cause() {
    let text = [
        ibstat("mlx5_0", "MT4129", UP, 400, "Ethernet"),
        ibstat("mlx5_1", "MT4129", "Down/Disabled", 40, "Ethernet"),
        ibstat("mlx5_2", "MT4129", UP, 400, "Ethernet"),
        ibstat("mlx5_3", "MT4125", UP, 100, "Ethernet"),
    ]
    .concat();
    let (_, assessment) = read(&text);
    let down: Vec<_> =
        assessment.findings.iter().filter(|finding| finding.severity == Severity::Fail).collect();
    assert_eq!(down.len(), 1);
    assert_eq!((down[0].kind, down[0].place.as_str()), ("port_down", "mlx5_1"));
    assert!(down[0].what.contains("disabled") && down[0].what.contains("placeholder"), "{}", down[0].what);
}

#[test]
fn a_fabric_that_is_all_down_is_not_taken_for_the_front_end() {
    let text = [
        ibstat("mlx5_0", "MT4129", "Down/Polling", 10, "InfiniBand"),
        ibstat("mlx5_1", "MT4129", "Down/Polling", 10, "InfiniBand"),
        ibstat("mlx5_2", "MT4125", UP, 100, "Ethernet"),
    ]
    .concat();
    let (inventory, assessment) = read(&text);
    assert_eq!(roles(&inventory, &assessment)[0], "mlx5_0=compute/assumed");
    assert_eq!(roles(&inventory, &assessment)[2], "mlx5_2=front_end/likely");
    assert_eq!(severity(&assessment, "port_down"), Some(Severity::Fail));
}

#[test]
fn a_cut_port_is_a_gap_and_a_lone_dead_port_is_no_fabric() {
    let text = "CA 'mlx4_0'\n  CA type: MT4099\n  Number of ports: 2\n  Port 1:\n    State: Down\n    Physical state: Polling\n    Rate: 10\n    Link layer: InfiniBand\n  Port 2:\n    State: Down\n    Physical state: Disabled\n";
    let (inventory, assessment) = read(text);
    assert_eq!(roles(&inventory, &assessment), ["mlx4_0=unknown/unknown", "mlx4_0=unknown/unknown"]);
    assert_eq!(worst(&assessment), Some(Severity::Warn));
    assert!(inventory.gaps.iter().any(|gap| gap.what.contains("mlx4_0 port 2")), "{:?}", inventory.gaps);
}

#[test]
fn a_port_without_a_subnet_manager_is_named_even_without_its_hcas_name() {
    let (inventory, assessment) = read(
        "        fw_ver:                 20.1\n        vendor_part_id:         4123\n        phys_port_cnt:          1\n                port:   1\n                        state:                  PORT_INIT (2)\n                        sm_lid:                 0\n                        port_lid:               65535\n                        link_layer:             InfiniBand\n",
    );
    let found = assessment.findings.iter().find(|finding| finding.kind == "no_subnet_manager").unwrap();
    assert_eq!((found.severity, found.confidence), (Severity::Fail, Confidence::Proven));
    assert_eq!(inventory.hcas[0].name, None, "no name is invented");
    assert!(inventory.gaps.iter().any(|gap| gap.what.contains("name of an HCA")));
}

#[test]
fn all_forms_of_the_same_ports_agree() {
    let text = "\
Infiniband device 'mlx5_0' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:aaaa:bbbb:cccc:dddd
\tbase lid:\t 0x1f
\tsm lid:\t\t 0x1
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 200 Gb/sec (4X HDR)
\tlink_layer:\t InfiniBand

hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t20.1
\tvendor_part_id:\t\t\t4123
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tactive_mtu:\t\t4096 (5)
\t\t\tsm_lid:\t\t\t1
\t\t\tport_lid:\t\t31
\t\t\tlink_layer:\t\tInfiniBand
\t\t\tactive_width:\t\t4X (2)
\t\t\tactive_speed:\t\t50.0 Gbps (64)
\t\t\tphys_state:\t\tLINK_UP (5)
link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 31 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP
0/1: mlx5_0/1: state ACTIVE physical_state LINK_UP
mlx5_0 port 1 ==> ib0 (Up)
/sys/class/infiniband/mlx5_0/hca_type:MT4123
==> /sys/class/infiniband/mlx5_0/ports/1/rate <==
200 Gb/sec (4X HDR)
";
    let (inventory, assessment) = read(text);
    assert_eq!(inventory.hcas.len(), 1);
    assert_eq!(inventory.contradictions, Vec::<String>::new());
    let port = &inventory.hcas[0].ports[0];
    assert_eq!((port.lid, port.sm_lid, port.active_mtu), (Some(31), Some(1), Some(4096)));
    assert_eq!(port.link_layer, Some(LinkLayer::InfiniBand));
    assert_eq!(port.rate.map(|rate| rate.gbps()), Some(200.0));
    assert_eq!(port.netdev.as_deref(), Some("ib0"));
    assert_eq!(inventory.hcas[0].model.as_deref(), Some("MT4123"));
    assert_eq!(worst(&assessment), Some(Severity::Info));
    assert_eq!(inventory.captures.len(), 5, "{:?}", inventory.captures);
    let (_, assessment) = read(&text.replace("state:\t\t\tPORT_ACTIVE (4)", "state:\t\t\tPORT_DOWN (1)"));
    assert_eq!(severity(&assessment, "contradiction"), Some(Severity::Warn));
}

#[test]
fn ipoib_that_is_down_is_no_failure_of_the_fabric() {
    let (inventory, assessment) =
        read("ack0 port 1 ==> eth1 (Up)\nrail0 port 1 ==> ib0 (Down)\nrail1 port 1 ==> ib1 (Down)\n");
    assert_eq!(severity(&assessment, "ipoib_down"), Some(Severity::Info));
    assert_eq!(worst(&assessment), Some(Severity::Info));
    assert!(assessment.missing.iter().any(|gap| gap.command == "ibstat"));
    assert_eq!(roles(&inventory, &assessment)[0], "ack0=front_end/assumed");
    let (inventory, _) =
        read("0000:19:00.0 mlx5_0 (MT4129 - MCX7) CX-7 fw 28.39 port 1 (ACTIVE) ==> ibp25s0 (Up)\n");
    assert_eq!(inventory.hcas[0].bus.map(|bus| bus.to_string()).as_deref(), Some("0000:19:00.0"));
    assert_eq!(inventory.hcas[0].ports[0].is_up(), Some(true));
}

#[test]
fn the_gid_with_an_address_is_named_and_link_local_ones_are_warned_of() {
    let row = |name: &str, index: u16, gid: &str, rest: &str| format!("{name}\t1\t{index}\t{gid}\t{rest}\n");
    let local = "fe80:0000:0000:0000:0a0b:0cff:fe0d:0e0f";
    let mapped = "0000:0000:0000:0000:0000:ffff:0a00:000b";
    let header = "DEV     PORT    INDEX   GID     IPv4            VER     DEV\n---     ----    -----   ---     ------------    ---     ---\n";
    let text = [
        header.to_owned(),
        row("roce0", 0, local, "v1\teth4"),
        row("roce0", 3, mapped, "10.0.0.11\tv2\teth4"),
        row("bare0", 0, local, "v2\teth5"),
        row("pure0", 0, "fe80:0000:0000:0000:aaaa:0000:0000:0002", "v1"),
    ]
    .concat();
    let (_, assessment) = read(&text);
    let index = assessment.findings.iter().find(|finding| finding.kind == "gid_index").unwrap();
    assert_eq!((index.place.as_str(), index.confidence), ("roce0", Confidence::Likely));
    assert!(index.what.contains("GID index 3") && index.what.contains("not index 0"), "{}", index.what);
    let local_only = assessment.findings.iter().find(|finding| finding.kind == "gid_link_local").unwrap();
    assert_eq!(local_only.place, "bare0");
    let ib = assessment.findings.iter().find(|finding| finding.kind == "gid_index_irrelevant").unwrap();
    assert_eq!(ib.place, "pure0");
    let (_, assessment) = read(&[row("iw0", 0, local, ""), row("iw0", 1, mapped, "10.0.0.11")].concat());
    let index = assessment.findings.iter().find(|finding| finding.kind == "gid_index").unwrap();
    assert_eq!(index.confidence, Confidence::Assumed, "the version is not shown");
}

#[test]
fn a_saturated_counter_is_told_and_a_count_since_boot_is_no_failure() {
    let path = "/sys/class/infiniband/mlx5_4/ports/1";
    let (inventory, assessment) = read(&format!(
        "{path}/counters/link_downed: 255\n{path}/counters/port_rcv_errors: 14\n{path}/link_layer: InfiniBand\n"
    ));
    assert_eq!(inventory.hcas[0].ports[0].counters.get("port_rcv_errors"), Some(&14));
    assert_eq!(severity(&assessment, "counter_saturated"), Some(Severity::Info));
    let since = assessment.findings.iter().find(|finding| finding.kind == "counters_since_boot").unwrap();
    assert_eq!(
        (since.severity, since.what.as_str()),
        (Severity::Info, "counters above zero: port_rcv_errors")
    );
}

#[test]
fn slower_adapters_on_a_faster_switch_are_named_and_the_switchs_own_is_not() {
    let (inventory, assessment) = read(
        "CA: node-3 HCA-1:\n      0xaaaa0001      6    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       3    3[  ] \"MF0;sw:MQM8700/U1\" ( )\nCA: Mellanox Technologies Aggregation Node:\n      0xaaaa0002      4    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       3   41[  ] \"MF0;sw:MQM8700/U1\" ( )\nSwitch: 0xaaaa0005 MF0;sw:MQM8700/U1:\n           3    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       1    1[  ] \"node-3 HCA-1\" ( Could be 53.125 Gbps)\n           3    2[  ] ==(                Down/ Polling)==>             [  ] \"\" ( )\n",
    );
    assert_eq!(inventory.fabric.len(), 3);
    assert_eq!(inventory.fabric[1].local_kind, FabricNode::Aggregation);
    let found = assessment.findings.iter().find(|finding| finding.kind == "below_switch_rate").unwrap();
    assert_eq!(found.place, "node-3 HCA-1");
    assert!(found.what.contains("InfiniBand EDR on an HDR switch"), "{}", found.what);
    assert_eq!(severity(&assessment, "link_could_be_faster"), Some(Severity::Warn));
}

#[test]
fn access_control_that_redirects_is_a_warning_on_bare_metal_only() {
    let lspci = "16:00.0 PCI bridge: PMC-Sierra Device 4000\n\tCapabilities: [b0] Access Control Services\n\t\tACSCap:\tSrcValid+ ReqRedir+\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+\n\n17:00.0 PCI bridge: PMC-Sierra Device 4000\n\t\tACSCtl:\tSrcValid- ReqRedir- CmpltRedir-\n";
    let (inventory, assessment) = read(lspci);
    assert_eq!(inventory.acs.len(), 2);
    let found = assessment.findings.iter().find(|finding| finding.kind == "acs_redirect").unwrap();
    assert_eq!((found.severity, found.place.as_str()), (Severity::Warn, "0000:16:00.0"));
    let (_, assessment) = read(&format!("Hypervisor vendor:  KVM\n{lspci}"));
    assert_eq!(severity(&assessment, "acs_redirect"), Some(Severity::Info));
    let (inventory, _) =
        read("\t\tACSCtl:\tSrcValid- ReqRedir- CmpltRedir-\n\t\tACSCtl:\tSrcValid+ ReqRedir+ CmpltRedir-\n");
    assert_eq!(inventory.acs.iter().map(|acs| acs.redirects).collect::<Vec<_>>(), [false, true]);
}

/// A topology file: two switches, a GPU and a NIC below each, and a NIC apart.
const TOPOLOGY: &str = r#"<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64">
    <pci busid="0000:16:00.0" class="0x060400">
      <pci busid="0000:18:00.0" class="0x030200"><gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="0000:ff:00.0" count="18" tclass="0x068000"/></gpu></pci>
      <pci busid="0000:19:00.0" class="0x020700"><nic><net name="mlx5_4" dev="0" speed="400000" port="1" guid="0x1" gdr="1"/></nic></pci>
    </pci>
    <pci busid="0000:26:00.0" class="0x060400">
      <pci busid="0000:28:00.0" class="0x030200"><gpu dev="1" sm="90" rank="1" gdr="1"><nvlink target="0000:ff:00.0" count="18" tclass="0x068000"/></gpu></pci>
      <pci busid="0000:29:00.0" class="0x020700"><nic><net name="mlx5_2" dev="1" speed="400000" port="1" guid="0x2" gdr="1"/></nic></pci>
    </pci>
  </cpu>
  <cpu numaid="1" arch="x86_64"><pci busid="0000:99:00.0" class="0x020000"><nic><net name="mlx5_0" dev="2" speed="100000" port="1" guid="0x3"/></nic></pci></cpu>
</system>
"#;

#[test]
fn a_topology_file_is_read_and_written_and_read_again() {
    let (inventory, assessment) = read(TOPOLOGY);
    assert_eq!(pairs(&inventory, &assessment), ["0:mlx5_4:0", "1:mlx5_2:1"]);
    assert_eq!(roles(&inventory, &assessment)[2], "mlx5_0=storage_or_front_end/likely");
    let written = nccl_xml::write(&inventory, &assessment).unwrap();
    for part in ["busid=\"0000:18:00.0\"", "busid=\"0000:29:00.0\"", "numaid=\"0\""] {
        assert!(written.contains(part), "{part} is not in\n{written}");
    }
    assert!(!written.contains("0000:99:00.0"), "the front-end is no part of it");
    // Devices of one switch stand below one element.
    let switch = written.split("class=\"0x060400\"").nth(1).unwrap();
    assert!(switch.contains("0000:18:00.0") && switch.contains("0000:19:00.0"), "{written}");
}

#[test]
fn a_topology_file_that_is_cut_is_a_gap() {
    for end in (0..TOPOLOGY.len()).step_by(7) {
        let (inventory, _) = read(&TOPOLOGY[..end]);
        let told = inventory.gaps.iter().any(|gap| gap.what.contains("cut or damaged"));
        assert!(told || inventory.captures.is_empty() || end > TOPOLOGY.len() - 2, "{end}");
    }
    let cut = TOPOLOGY.find("    <pci busid=\"0000:26").unwrap();
    let (inventory, _) =
        read(&format!("{}$ ibstat\n{}", &TOPOLOGY[..cut], ibstat("mlx5_7", "MT4129", UP, 400, "InfiniBand")));
    assert!(
        inventory.hcas.iter().any(|hca| hca.name.as_deref() == Some("mlx5_7")),
        "what follows a cut file is read"
    );
}

#[test]
fn no_topology_file_is_written_from_guesses() {
    let (inventory, assessment) = read("\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n");
    let error = nccl_xml::write(&inventory, &assessment).unwrap_err().to_string();
    for part in ["the PCI address of GPU0 (nvidia-smi --query-gpu", "the name of NIC0", "the NUMA node"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[test]
fn one_text_may_hold_the_captures_of_all_tools() {
    let matrix = "\tGPU0\tGPU1\tNIC0\tNIC1\tNIC2\nGPU0\t X \tNV4\tPIX\tSYS\tNODE\nGPU1\tNV4\t X \tSYS\tPIX\tSYS\n\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n  NIC2: mlx5_2\n";
    let ports = [
        ibstat("mlx5_0", "MT4129", UP, 400, "InfiniBand"),
        ibstat("mlx5_1", "MT4129", UP, 400, "InfiniBand"),
        ibstat("mlx5_2", "MT4125", UP, 100, "Ethernet"),
    ]
    .concat();
    let (inventory, assessment) = read(&format!("$ nvidia-smi topo -m\n{matrix}$ ibstat\n{ports}$ exit\n"));
    assert_eq!(pairs(&inventory, &assessment), ["0:mlx5_0:0", "1:mlx5_1:1"]);
    assert_eq!(
        roles(&inventory, &assessment),
        ["mlx5_0=compute/proven", "mlx5_1=compute/proven", "mlx5_2=front_end/likely"]
    );
}
