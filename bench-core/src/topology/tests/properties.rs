//! No text makes an importer fail, keep too much or take long.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::super::{TopologyDocument, nccl_xml, text};
use super::{pairs, read};

/// Pieces of every tool's output, so that random texts reach deep into every reader.
const PIECES: [&str; 76] = [
    "GPU0",
    "GPU1",
    "GPU255",
    "GPU65535",
    "GPU",
    "NIC0",
    "NIC1",
    "NIC",
    "mlx5_0",
    "mlx5_1",
    "X",
    "NV18",
    "NV",
    "NV99999",
    "PIX",
    "PXB",
    "PHB",
    "NODE",
    "SYS",
    "SOC",
    "HT",
    "N/A",
    "CPU Affinity",
    "NUMA Affinity",
    "GPU NUMA ID",
    "0-7",
    "0,1",
    "Legend:",
    "NIC Legend:",
    "NV# =",
    "NIC0: mlx5_0",
    "CA 'mlx5_0'",
    "CA type: MT4129",
    "Port 1:",
    "Port 99999:",
    "State: Active",
    "Physical state: LinkUp",
    "Rate: 400",
    "Rate: 1e308",
    "Base lid: 0x1",
    "SM lid: 0",
    "Link layer: InfiniBand",
    "Infiniband device 'mlx5_0' port 1 status:",
    "rate: 400 Gb/sec (4X NDR)",
    "link_layer: Ethernet",
    "hca_id: mlx5_0",
    "port: 1",
    "state: PORT_INIT (2)",
    "active_width: 4X (2)",
    "active_speed: 1e308 Gbps",
    "GID[  0]: fe80::1, RoCE v2",
    "mlx5_0 port 1 ==> ib0 (Up)",
    "mlx5_0 1 0 fe80:0000::1 10.0.0.1 v2 eth0",
    "link mlx5_0/1 state ACTIVE netdev eth0",
    "CA: n HCA-1:",
    "0x1 6 1[ ] ==( 4X 25.78125 Gbps Active/ LinkUp)==> 3 3[ ] \"MQM8700\" ( )",
    "<system version=\"1\">",
    "<cpu numaid=\"0\">",
    "<pci busid=\"0000:18:00.0\">",
    "<gpu dev=\"0\">",
    "<net name=\"mlx5_0\" speed=\"1\"/>",
    "<nvlink target=\"0000:18:00.0\" count=\"65535\" tclass=\"0x068000\"/>",
    "</gpu>",
    "</pci>",
    "</cpu>",
    "</system>",
    "GPU 0: NVIDIA X (UUID: GPU-1)",
    "Link 0: <inactive>",
    "Link 1: 25 GB/s",
    "GPU 00000000:18:00.0",
    "    Fabric",
    "        State : Completed",
    "18:00.0 PCI bridge: X",
    "\tACSCtl: ReqRedir+",
    "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed: 255",
    "\u{1b}[4m",
];

fn pieces() -> impl Strategy<Value = String> {
    let separator = prop_oneof![
        Just(" "),
        Just("\t"),
        Just("\n"),
        Just("\n"),
        Just("\r\n"),
        Just(""),
        Just("\n\n"),
        Just("    ")
    ];
    let piece =
        prop_oneof![8 => proptest::sample::select(PIECES.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,6}"];
    proptest::collection::vec((piece, separator), 0..120)
        .prop_map(|parts| parts.into_iter().map(|(piece, separator)| piece + separator).collect())
}

/// Everything that is drawn from a text is drawn without a panic.
fn draw_all(input: &str) {
    let (inventory, assessment) = read(input);
    assert_eq!(assessment.pairs.len(), inventory.gpus.len());
    let named: Vec<_> = assessment.pairs.iter().filter_map(|pair| pair.hca).collect();
    assert!(named.iter().all(|id| id.0 < inventory.hcas.len()));
    let _: String = text::render(&inventory, &assessment);
    let json = TopologyDocument::new(&inventory, &assessment).to_json();
    assert!(serde_json::from_str::<TopologyDocument>(&json).is_ok());
    let _: Result<String, _> = nccl_xml::write(&inventory, &assessment);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_mixture_of_the_tools_pieces_is_survived(input in pieces()) {
        draw_all(&input);
    }

    #[test]
    fn any_text_is_survived(input in "(?s).{0,400}") {
        draw_all(&input);
    }
}

/// A matrix whose GPU i is PIX with NIC `places[i]` and SYS with the others.
fn matrix(places: &[usize]) -> String {
    let count = places.len();
    let name = |prefix: &str| (0..count).map(|i| format!("\t{prefix}{i}")).collect::<String>();
    let mut text = format!("{}{}\n", name("GPU"), name("NIC"));
    for (gpu, near) in places.iter().enumerate() {
        let peers: String = (0..count).map(|i| if i == gpu { "\t X " } else { "\tNV18" }).collect();
        let nics: String = (0..count).map(|i| if i == *near { "\tPIX" } else { "\tSYS" }).collect();
        writeln!(text, "GPU{gpu}{peers}{nics}").unwrap();
    }
    text
}

proptest! {
    #[test]
    fn whatever_the_order_of_the_hcas_each_gpu_gets_its_own(places in Just((0..8).collect::<Vec<usize>>()).prop_shuffle()) {
        let (inventory, assessment) = read(&matrix(&places));
        let expected: Vec<String> = places.iter().enumerate().map(|(gpu, nic)| format!("{gpu}:NIC{nic}:{gpu}")).collect();
        prop_assert_eq!(pairs(&inventory, &assessment), expected);
    }
}

/// What is kept does not grow with what is repeated, and neither does the work for a line.
#[test]
fn a_long_text_is_read_in_bounded_memory() {
    let mut text = String::new();
    for i in 0..20_000 {
        writeln!(
            text,
            "CA 'dev{i}'\n\tPort {i}:\n\t\tState: Down\nmlx5_0 {} {i} fe80::{} v2\nGPU {i}: NVIDIA X",
            i % 7 + 1,
            i % 9
        )
        .unwrap();
    }
    let (inventory, _) = read(&text);
    assert!(inventory.hcas.len() <= 512 && inventory.gpus.len() <= 256);
    assert!(inventory.gaps.len() <= 256 && inventory.contradictions.len() <= 256);
    assert!(
        inventory
            .hcas
            .iter()
            .all(|hca| hca.ports.len() <= 32 && hca.ports.iter().all(|port| port.gids.len() <= 512))
    );
}

/// The largest matrix that is read: 256 GPUs and 512 NICs, all alike.
#[test]
fn the_largest_matrix_is_assessed() {
    let names: String =
        (0..256).map(|i| format!("\tGPU{i}")).chain((0..512).map(|i| format!("\tNIC{i}"))).collect();
    let mut text = format!("{names}\n");
    for gpu in 0..256 {
        let cells: String = (0..768).map(|i| if i == gpu { "\tX" } else { "\tPIX" }).collect();
        writeln!(text, "GPU{gpu}{cells}").unwrap();
    }
    let (inventory, assessment) = read(&text);
    let mut chosen: Vec<_> = assessment.pairs.iter().filter_map(|pair| pair.hca).collect();
    chosen.dedup();
    assert_eq!((inventory.hcas.len(), chosen.len()), (512, 256));
}
