//! Matrices of distances, and NVLink.

use super::super::{Confidence, PciTree, Severity};
use super::{pairs, read, roles, severity, worst};

/// Two GPUs with their NICs, a third NIC apart.
const RAILS: &str = "\
        GPU0    GPU1    NIC0    NIC1    NIC2    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV4     SYS     PIX     NODE    0-7     0               N/A
GPU1    NV4      X      PIX     SYS     SYS     8-15    1               N/A
NIC0    SYS     PIX      X      SYS     SYS
NIC1    PIX     SYS     SYS      X      NODE
NIC2    NODE    SYS     SYS     NODE     X

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: left0
  NIC1: right7
  NIC2: other3
";

#[test]
fn rails_follow_the_distances_and_not_the_numbers() {
    let (inventory, assessment) = read(RAILS);
    assert_eq!(pairs(&inventory, &assessment), ["0:right7:0", "1:left0:1"]);
    assert!(assessment.pairs.iter().all(|pair| pair.confidence == Confidence::Proven));
    let roles = roles(&inventory, &assessment);
    assert_eq!(
        roles,
        ["left0=compute/likely", "right7=compute/likely", "other3=storage_or_front_end/likely"]
    );
    assert_eq!(severity(&assessment, "nvlink_uniform"), Some(Severity::Info));
    assert_eq!(worst(&assessment), Some(Severity::Info));
    assert_eq!(inventory.gpus[1].numa.as_ref().and_then(|numa| numa.only()), Some(1));
}

#[test]
fn every_way_to_print_a_matrix_gives_the_same_pairs() {
    let tabs = RAILS.replace("        GPU0", "\tGPU0").replace("    ", "\t");
    let escapes =
        format!("\u{1b}[4m{}\u{1b}[0m", RAILS.replacen("GPU NUMA ID\n", "GPU NUMA ID\u{1b}[0m\n", 1));
    let bare =
        RAILS.replacen("        GPU0", "[4m        GPU0", 1).replacen("GPU NUMA ID\n", "GPU NUMA ID[0m\n", 1);
    let windows = RAILS.replace('\n', "\r\n");
    let quoted = RAILS.lines().map(|line| format!("> {line}\n")).collect::<String>();
    let logged =
        RAILS.lines().map(|line| format!("2026-01-02T03:04:05Z stdout F {line}\n")).collect::<String>();
    let parallel = RAILS.lines().map(|line| format!("node-7: {line}\n")).collect::<String>();
    let transcript = format!("me@host:~$ nvidia-smi topo -m\n{RAILS}me@host:~$ exit\n");
    let markdown =
        RAILS.lines().map(|line| format!("| {} |\n", line.replace("    ", " | "))).collect::<String>();
    let spaced = RAILS.replace('\n', "\n\n");
    for text in [tabs, escapes, bare, windows, quoted, logged, parallel, transcript, markdown, spaced] {
        let (inventory, assessment) = read(&text);
        assert_eq!(pairs(&inventory, &assessment), ["0:right7:0", "1:left0:1"], "{text}");
    }
}

#[test]
fn columns_that_run_together_are_read() {
    let (inventory, assessment) = read(
        "GPU0GPU1NIC0NIC1CPU AffinityNUMA Affinity\nGPU0 X NV4SYSPIX0-7 0\nGPU1NV4 X PIXSYS8-15 1\nNIC Legend:\nNIC0: a0\nNIC1: b0\n",
    );
    // The second row has no space after its name: it is a row that cannot be told from a name, and is not invented.
    assert_eq!(pairs(&inventory, &assessment)[0], "0:b0:0");
}

#[test]
fn an_old_driver_names_its_columns_and_says_soc() {
    let (inventory, assessment) = read(
        "\tGPU0\tGPU1\tmlx5_3\tmlx5_1\tCPU Affinity\nGPU0\t X \tSOC\tPIX\tSOC\t0-7\nGPU1\tSOC\t X \tSOC\tPHB\t8-15\nmlx5_3\tPIX\tSOC\t X \tSOC\nmlx5_1\tSOC\tPHB\tSOC\t X \n",
    );
    assert_eq!(pairs(&inventory, &assessment), ["0:mlx5_3:0", "1:mlx5_1:1"]);
    // It shares no switch with GPU1, but nothing else is nearer to it.
    assert_eq!(roles(&inventory, &assessment)[1], "mlx5_1=compute/assumed");
}

#[test]
fn two_gpus_under_one_switch_with_two_hcas_get_one_each_and_it_is_only_assumed() {
    let (inventory, assessment) = read(
        "\tGPU0\tGPU1\tNIC0\tNIC1\nGPU0\t X \tNV8\tPIX\tPIX\nGPU1\tNV8\t X \tPIX\tPIX\nNIC0\tPIX\tPIX\t X \tPIX\nNIC1\tPIX\tPIX\tPIX\t X \n\nNIC Legend:\n NIC0: rdma_bond_0\n NIC1: rdma_bond_1\n",
    );
    assert_eq!(pairs(&inventory, &assessment), ["0:rdma_bond_0:0", "1:rdma_bond_1:1"]);
    assert!(assessment.pairs.iter().all(|pair| pair.confidence == Confidence::Assumed));
    assert_eq!(severity(&assessment, "bonded"), Some(Severity::Info));
    assert_eq!(
        severity(&assessment, "two_port_card"),
        None,
        "PIX under the GPUs' switch is no sign of one card"
    );
}

#[test]
fn too_few_hcas_are_shared_evenly_by_distance() {
    let (inventory, assessment) = read(
        "\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tmlx5_1\nGPU0\t X \tNV6\tNV6\tNV6\tPIX\tPXB\nGPU1\tNV6\t X \tNV6\tNV6\tPIX\tPXB\nGPU2\tNV6\tNV6\t X \tNV6\tPXB\tPIX\nGPU3\tNV6\tNV6\tNV6\t X \tPXB\tPIX\n",
    );
    assert_eq!(pairs(&inventory, &assessment), ["0:mlx5_0:0", "1:mlx5_0:0", "2:mlx5_1:1", "3:mlx5_1:1"]);
    assert_eq!(severity(&assessment, "shared_hcas"), Some(Severity::Info));
}

#[test]
fn a_cut_matrix_gives_what_it_shows_and_says_what_it_lacks() {
    let text = "        GPU0    GPU1    GPU2    NIC0    NIC1    NIC2    CPU Affinity    NUMA Affinity\nGPU0     X      NV6     NV6     PIX     SYS     SYS     0-7     0\nGPU1    NV6      X      NV6     SYS     PIX  ";
    let (inventory, assessment) = read(text);
    assert_eq!(pairs(&inventory, &assessment), ["0:NIC0:0", "1:NIC1:1", "2:-:-"]);
    assert!(assessment.pairs[2].reason.contains("missing"), "{}", assessment.pairs[2].reason);
    assert_eq!(
        roles(&inventory, &assessment)[2],
        "NIC2=unknown/unknown",
        "its GPU may be the one that is cut off"
    );
    let missing = assessment.missing.iter().map(|gap| gap.what.as_str()).collect::<Vec<_>>().join("\n");
    assert!(
        missing.contains("rows of GPU1, GPU2, NIC0-NIC2") && missing.contains("names of the NICs"),
        "{missing}"
    );
    let first_row = text.find("\nGPU1").unwrap();
    let (_, short) = read(&text[..first_row]);
    let nvlink = short.findings.iter().find(|finding| finding.kind == "nvlink_uniform").unwrap();
    assert_ne!(nvlink.confidence, Confidence::Proven, "the pair of GPU1 and GPU2 is not shown");
    for end in 0..text.len() {
        // Any other cut invents nothing either.
        let (inventory, assessment) = read(&text[..end]);
        for pair in pairs(&inventory, &assessment) {
            assert!(
                ["0:NIC0:0", "1:NIC1:1"].contains(&pair.as_str()) || pair.contains(":-:-"),
                "{end}: {pair}"
            );
        }
    }
}

#[test]
fn an_hcas_numa_node_settles_that_it_is_no_rail_before_all_rows_are_there() {
    let row = |gpu: usize, near: usize, extra: &str| {
        let cells: Vec<&str> = (0..4).map(|nic| if nic == near { "PIX" } else { "SYS" }).collect();
        format!(
            "GPU{gpu}\t{}\t{}\t{extra}\n",
            ["X\tNV18\tNV18\tNV18", "NV18\tX\tNV18\tNV18", "NV18\tNV18\tX\tNV18"][gpu],
            cells.join("\t")
        )
    };
    let header = "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tNIC3\tNIC4\n";
    let (inventory, assessment) =
        read(&format!("{header}{}{}{}", row(0, 0, "NODE"), row(1, 1, "NODE"), row(2, 2, "SYS")));
    let roles = roles(&inventory, &assessment);
    assert_eq!(roles[3], "NIC3=unknown/unknown");
    assert_eq!(roles[4], "NIC4=storage_or_front_end/likely");
}

#[test]
fn a_hidden_tree_is_said_and_order_is_no_substitute() {
    for distance in ["PHB", "SYS"] {
        let (inventory, assessment) = read(&format!(
            "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\t{distance}\t{distance}\t0-7\t0\nGPU1\tNV18\t X \t{distance}\t{distance}\t0-7\t0\n"
        ));
        assert!(matches!(assessment.tree, PciTree::Hidden(_)));
        assert_eq!(pairs(&inventory, &assessment), ["0:-:-", "1:-:-"]);
        assert_eq!(severity(&assessment, "tree_hidden"), Some(Severity::Warn));
    }
}

#[test]
fn sys_everywhere_is_normal_on_grace() {
    let (inventory, assessment) = read(
        "\tGPU0\tGPU1\tNIC0\tNIC1\tNIC2\tNIC3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV18\tSYS\tSYS\tSYS\tSYS\t0-71\t0,2-9\t2\nGPU1\tNV18\t X \tSYS\tSYS\tSYS\tSYS\t72-143\t1,10-17\t10\nNIC0\tSYS\tSYS\t X \tSYS\tSYS\tSYS\nNIC1\tSYS\tSYS\tSYS\t X \tPIX\tSYS\nNIC2\tSYS\tSYS\tSYS\tPIX\t X \tSYS\nNIC3\tSYS\tSYS\tSYS\tSYS\tSYS\t X \n",
    );
    assert_eq!(assessment.tree, PciTree::Separate);
    assert_eq!(worst(&assessment), Some(Severity::Info), "{:?}", assessment.findings);
    assert_eq!(pairs(&inventory, &assessment), ["0:-:-", "1:-:-"]);
    assert_eq!(roles(&inventory, &assessment)[1], "NIC1=storage_or_front_end/assumed");
    assert_eq!(inventory.gpus[1].memory_numa, Some(10));
    assert_eq!(inventory.gpus[1].numa.as_ref().map(|numa| numa.as_str()), Some("1,10-17"));
}

#[test]
fn without_nvlink_in_cells_and_legend_its_state_is_unknown() {
    let plain = "\tGPU0\tGPU1\nGPU0\t X \tNODE\nGPU1\tNODE\t X \n";
    let (_, assessment) = read(plain);
    assert_eq!(severity(&assessment, "nvlink_not_shown"), Some(Severity::Info));
    assert_eq!(severity(&assessment, "nvlink_none"), None);
    let (_, assessment) =
        read(&format!("{plain}\nLegend:\n  NV#  = Connection traversing a bonded set of # NVLinks\n"));
    assert_eq!(severity(&assessment, "nvlink_none"), Some(Severity::Info));
    assert_eq!(severity(&assessment, "nvlink_not_shown"), None);
}

#[test]
fn two_bridged_pairs_are_islands_and_a_lame_gpu_is_named() {
    let (_, assessment) = read(
        "\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\t X \tNV12\tSYS\tSYS\nGPU1\tNV12\t X \tSYS\tSYS\nGPU2\tSYS\tSYS\t X \tNV12\nGPU3\tSYS\tSYS\tNV12\t X \n",
    );
    assert_eq!(severity(&assessment, "nvlink_islands"), Some(Severity::Warn));
    assert_eq!(severity(&assessment, "nvlink_uneven"), None);
    let (_, assessment) =
        read("\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV6\tNV6\nGPU1\tNV6\t X \tNV4\nGPU2\tNV6\tNV4\t X \n");
    let uneven = assessment.findings.iter().find(|finding| finding.kind == "nvlink_uneven").unwrap();
    assert_eq!(uneven.place, "GPU1, GPU2");
}

#[test]
fn a_gpu_that_lost_its_switched_links_is_a_fault_and_one_without_a_bridge_is_not() {
    let matrix = |count: usize, alone: usize, links: &str| {
        let header: String = (0..count).map(|gpu| format!("\tGPU{gpu}")).collect();
        let cell = |a: usize, b: usize| {
            if a == b {
                "X"
            } else if a == alone || b == alone {
                "NODE"
            } else {
                links
            }
        };
        let row = |a: usize| (0..count).map(|b| format!("\t{}", cell(a, b))).collect::<String>();
        let rows: String = (0..count).map(|a| format!("GPU{a}{}\n", row(a))).collect();
        format!("{header}\n{rows}")
    };
    let (_, assessment) = read(&matrix(8, 5, "NV18"));
    let found = assessment.findings.iter().find(|finding| finding.kind == "nvlink_left_out").unwrap();
    assert_eq!((found.severity, found.place.as_str()), (Severity::Fail, "GPU5"));
    let (_, assessment) = read(&matrix(3, 2, "NV4"));
    assert_eq!(severity(&assessment, "nvlink_left_out"), None);
    assert_eq!(severity(&assessment, "nvlink_islands"), Some(Severity::Warn));
}

#[test]
fn links_of_a_hybrid_mesh_may_differ_if_their_sums_do_not() {
    let (_, assessment) = read(
        "\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\tX\tNV1\tNV2\tSYS\nGPU1\tNV1\tX\tSYS\tNV2\nGPU2\tNV2\tSYS\tX\tNV1\nGPU3\tSYS\tNV2\tNV1\tX\n",
    );
    assert_eq!(severity(&assessment, "nvlink_uneven"), Some(Severity::Info));
}

#[test]
fn another_vendors_link_is_kept_and_nothing_is_concluded_from_it() {
    let (inventory, assessment) = read(
        "        GPU0    GPU1    Node Affinity  CPU Affinity\nGPU0    X       QQ      2              32-47\nGPU1    QQ      X       2              32-47\n\nLegend:\n  QQ   = Connection traversing QuickLink\n",
    );
    let found = assessment.findings.iter().find(|finding| finding.kind == "unknown_link").unwrap();
    assert!(found.what.contains("QQ (Connection traversing QuickLink)"), "{}", found.what);
    assert!(!assessment.findings.iter().any(|finding| finding.kind.starts_with("nvlink")));
    assert!(!assessment.missing.iter().any(|gap| gap.command.contains("nvlink")));
    assert_eq!(inventory.gpus[0].cpus.as_ref().map(|cpus| cpus.as_str()), Some("32-47"));
}

#[test]
fn a_matrix_of_what_peers_may_do_holds_no_distances() {
    let (inventory, _) = read(
        " \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n",
    );
    assert!(inventory.matrix.is_none() && inventory.gpus.is_empty(), "{inventory:?}");
}

#[test]
fn rows_that_contradict_each_other_are_told() {
    let (_, assessment) = read("\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tSYS\t X \n");
    assert_eq!(severity(&assessment, "contradiction"), Some(Severity::Warn));
}

#[test]
fn the_only_hca_on_another_socket_and_one_that_is_near_to_nobody() {
    let (_, assessment) = read(
        "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\tSYS\t0-7\t0\nGPU1\tSYS\t X \tNODE\t8-15\t1\n",
    );
    let across = assessment.findings.iter().find(|finding| finding.kind == "hca_across_sockets").unwrap();
    assert_eq!(across.place, "GPU0");
    let (_, assessment) = read(
        "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\tSYS\t0-7\t0\nGPU1\tSYS\t X \tSYS\t8-15\t1\n",
    );
    assert_eq!(severity(&assessment, "no_locality"), Some(Severity::Warn));
    assert_eq!(severity(&assessment, "hca_across_sockets"), None);
}

#[test]
fn inactive_links_are_named_and_weighed_by_the_model() {
    let gpu = |index: usize, name: &str, down: &[usize]| {
        let state = |link: usize| if down.contains(&link) { "<inactive>" } else { "26.562 GB/s" };
        let links: String = (0..4).map(|link| format!("\t Link {link}: {}\n", state(link))).collect();
        format!("GPU {index}: {name} (UUID: GPU-0000-{index})\n{links}")
    };
    let (inventory, assessment) =
        read(&format!("{}{}", gpu(0, "NVIDIA X100-SXM5", &[]), gpu(1, "NVIDIA X100-SXM5", &[1, 3])));
    let found = assessment.findings.iter().find(|finding| finding.kind == "nvlink_inactive").unwrap();
    assert_eq!(
        (found.severity, found.what.as_str()),
        (Severity::Fail, "2 of 4 NVLinks are active; inactive: 1, 3")
    );
    assert_eq!(inventory.gpus[1].uuid.as_deref(), Some("GPU-0000-1"));
    let (_, assessment) = read(&gpu(0, "NVIDIA X100 PCIe", &[0, 1]));
    assert_eq!(severity(&assessment, "nvlink_inactive"), Some(Severity::Warn));
    let (_, assessment) = read(
        "GPU 0: NVIDIA X (UUID: GPU-1)\nNVML: Unable to retrieve NVLink information as all links are inActive\n",
    );
    assert_eq!(severity(&assessment, "nvlink_inactive"), Some(Severity::Warn));
}

#[test]
fn the_state_of_the_nvlink_fabric_is_read() {
    let query = |state: &str| {
        format!(
            "GPU 00000000:18:00.0\n    Product Name                          : NVIDIA X100\n    Fabric\n        State                             : {state}\n        Status                            : N/A\n    FB Memory Usage\n        Total                             : 1 MiB\n"
        )
    };
    let (inventory, assessment) = read(&query("In Progress"));
    assert_eq!(severity(&assessment, "nvlink_fabric"), Some(Severity::Fail));
    assert_eq!(inventory.gpus[0].bus.map(|bus| bus.to_string()).as_deref(), Some("0000:18:00.0"));
    assert_eq!(severity(&read(&query("Completed")).1, "nvlink_fabric"), None);
    let (inventory, _) = read(
        "    Fabric\n        State  : Completed\n        Status : Success\n    Fabric\n        State  : Completed\n        Status : Success\n",
    );
    assert_eq!(inventory.gpus.len(), 2);
}
