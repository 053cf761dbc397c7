//! The contract: a golden file each for the JSON and the table. They change in the commit that changes the output;
//! `UPDATE_GOLDEN=1` rewrites them.

use std::path::PathBuf;

use super::super::{SCHEMA, TopologyDocument, text};
use super::read;

/// A node with everything that the document can hold, in small.
const NODE: &str = "\
GPU 0: NVIDIA X100 (UUID: GPU-0a)
\t Link 0: 26.562 GB/s
\t Link 1: <inactive>
GPU 1: NVIDIA X100 (UUID: GPU-0b)
\tGPU0\tGPU1\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV2\tPIX\tSYS\tNODE\t0-7\t0\t\tN/A
GPU1\tNV2\t X \tSYS\tPIX\tSYS\t8-15\t1\t\tN/A

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
  NIC2: mlx5_2

Infiniband device 'mlx5_0' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:0000:0000:0000:0001
\tbase lid:\t 0x5
\tsm lid:\t\t 0x1
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 400 Gb/sec (4X NDR)
\tlink_layer:\t InfiniBand

Infiniband device 'mlx5_1' port 1 status:
\tbase lid:\t 0xffff
\tsm lid:\t\t 0x0
\tstate:\t\t 2: INIT
\tphys state:\t 5: LinkUp
\trate:\t\t 400 Gb/sec (4X NDR)
\tlink_layer:\t InfiniBand
mlx5_2 port 1 ==> eth0 (Up)
";

#[expect(clippy::disallowed_methods, reason = "a golden file is compared with, and rewritten when asked to")]
fn golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/topology/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("the golden folder is writable");
    }
    let expected = std::fs::read_to_string(&path).expect("the golden file is part of the repository");
    assert_eq!(text, expected, "{name} differs; UPDATE_GOLDEN=1 rewrites it");
}

#[test]
fn the_contract_and_the_table_are_as_agreed() {
    let (inventory, assessment) = read(NODE);
    let document = TopologyDocument::new(&inventory, &assessment);
    assert_eq!(document.schema, SCHEMA);
    golden("node.json", &document.to_json());
    golden("node.txt", &text::render(&inventory, &assessment));
}

#[test]
fn the_json_is_read_back_as_it_was() {
    let (inventory, assessment) = read(NODE);
    let document = TopologyDocument::new(&inventory, &assessment);
    let back: TopologyDocument = serde_json::from_str(&document.to_json()).unwrap();
    assert_eq!(back, document);
}
