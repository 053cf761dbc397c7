//! Real captures of other people and what must be concluded from each.
//!
//! The collection is no part of this repository: it lies beside the workspace, or where `RAILMESH_CORPUS` says. Without
//! it this test says SKIP. What is expected is written in small words:
//!
//! | word | holds if |
//! |---|---|
//! | `0>mlx5_2` | the GPU has that HCA |
//! | `0>?` | no HCA is named for the GPU |
//! | `0~` | the pairing is no more than assumed |
//! | `0!` | the pairing is proven |
//! | `mlx5_2=compute` | a port of the HCA has that role |
//! | `mlx5_2!compute` | no port of it has |
//! | `+kind` | there is such a finding |
//! | `+kind/fail` | and it is so serious |
//! | `+kind@mlx5_5` | and it is there |
//! | `-kind` | there is no such finding |
//! | `<fail` | no finding is so serious |
//! | `?text` | that is said to be missing |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bench_core::topology::{Assessment, Confidence, Inventory, Severity, assess, import};

/// What must be concluded, by the first letters of the file's name.
const EXPECTED: &[(&str, &str)] = &[
    (
        "A01",
        "0>mlx5_ib0 0! 1>mlx5_ib1 2>mlx5_ib2 3>mlx5_ib3 4>mlx5_ib4 5>mlx5_ib5 6>mlx5_ib6 7>mlx5_ib7 7! mlx5_eth0!compute mlx5_eth4!compute +nvlink_uniform/info <warn",
    ),
    (
        "A02",
        "0>mlx5_bond_0 0~ 1>mlx5_bond_1 2>mlx5_bond_2 3>mlx5_bond_3 7>mlx5_bond_7 +bonded +nvlink_uniform/info -nvlink_uneven <warn",
    ),
    (
        "A04",
        "0>mlx5_2 1>mlx5_3 2>mlx5_0 3>mlx5_1 4>mlx5_8 5>mlx5_9 6>mlx5_4 7>mlx5_5 0~ mlx5_6!compute mlx5_7!compute +two_port_card@mlx5_0 +two_port_card@mlx5_6",
    ),
    (
        "A05",
        "0>rocep25s0f0 1>rocep42s0f0 2>rocep59s0f0 3>rocep76s0f0 4>rocep155s0f0 5>rocep171s0f0 6>rocep193s0f0 7>rocep203s0f0 rocep90s0f0!compute rocep90s0f1!compute rocep216s0f0!compute +nvlink_not_shown -nvlink_none ?NVLink",
    ),
    ("A07", "0>? 3>? +tree_hidden/warn +more_hcas_than_gpus +nvlink_uniform mlx5_0!compute <fail"),
    (
        "A08",
        "0>? 3>? +grace_all_sys/info +two_port_card@mlx5_2 +two_port_card@mlx5_6 mlx5_2!compute -tree_hidden <warn",
    ),
    ("A09", "0>NIC0 0! 1>NIC1 2>NIC2 3>NIC3 +nvlink_uniform +divided_sockets/info <warn ?NIC"),
    ("A12", "0>mlx5_0 1>mlx5_0 2>mlx5_1 3>mlx5_1 4>? 15>? mlx5_2!compute +nvlink_uniform ?GPU4-GPU15"),
    ("A14", "0>NIC0 5>NIC5 6>? 7>? +nvlink_not_shown -nvlink_none -nvlink_inactive ?GPU6 ?NVLink <warn"),
    ("A15", "0>NIC0 0~ 1>NIC1 2>NIC2 3>NIC3 4>? ?GPU4-GPU7 <warn"),
    ("A16", "0>NIC0 4>NIC4 5>? NIC8!compute <warn"),
    ("A17", "0>? +unknown_link/warn -nvlink_none -nvlink_uniform -nvlink_not_shown <fail"),
    ("A18", "+nvlink_islands/warn -nvlink_uneven <fail"),
    (
        "A19",
        "0>NIC0 1>NIC1 2>NIC2 3>NIC3 0~ +no_common_switch/warn +two_port_card@NIC0 +two_port_card@NIC2 <fail",
    ),
    ("A20", "0>mlx5_0 +virtual_machine -tree_hidden <warn"),
    ("A21", "-nvlink_inactive -nvlink_none <warn"),
    ("A23", "+hca_across_sockets/warn@GPU0 2>mlx5_0 3>mlx5_1 0~ 1~ +nvlink_none/info <fail"),
    ("A24", "0~ 7~ +no_locality/warn -nvlink_none -nvlink_inactive <fail"),
    ("A27", "1>NIC1 1! 3>NIC2 3! 0~ 2~ +gpus_without_hca@GPU0 NIC0!compute ?GPU4-GPU7"),
    ("A29", "+nvlink_inactive/fail@GPU3"),
    ("A31", "0>NIC0 4>NIC4 5>NIC5 0~ 6>? <warn"),
    ("A32", "+nvlink_uniform +grace_memory_not_numa <warn"),
    (
        "B01",
        "mlx5_0=compute mlx5_11=compute mlx5_1!compute mlx5_2!compute +compute_ports +port_down/info@mlx5_2 +port_down@mlx5_7 +port_down@mlx5_8 <warn",
    ),
    (
        "B02",
        "+port_down/fail@mlx5_5 +port_down/fail@mlx5_11 mlx5_1!compute mlx5_2!compute mlx5_7!compute mlx5_8!compute mlx5_0=compute",
    ),
    ("B05", "mlx5_bond_0!compute mlx5_0=compute mlx5_9=compute <warn"),
    (
        "B06",
        "mlx5_0=compute mlx5_3=compute mlx5_4=compute mlx5_5=compute mlx5_6=compute mlx5_9=compute mlx5_10=compute mlx5_11=compute mlx5_1!compute mlx5_2!compute mlx5_7!compute <warn",
    ),
    ("B07", "mlx5_0=compute +compute_ports <warn"),
    ("B08", "+ipoib_down/info ?state <warn"),
    ("B11", "+no_subnet_manager/fail ?name"),
    ("B12", "mlx5_2=compute mlx5_0!compute mlx5_1!compute +restrict_hcas +small_mtu/info@mlx5_0 <fail"),
    ("B15", "+gid_link_local/warn@mlx5_0 +gid_index_irrelevant@mlx5_1"),
    ("B16", "+gid_index@qedr0 <warn"),
    ("B18", "ibp23s0=compute roceo2!compute +own_subnet_manager +port_down/info@roceo2 <warn"),
    ("B19", "+port_down/warn@mlx4_0 -slow_port ?mlx4_0 <fail"),
    ("B20", "mlx5_eth4!compute mlx5_ib0=compute +lane_speed_word@mlx5_eth4 <warn"),
    ("B21", "+below_switch_rate/warn <fail"),
    ("B22", "mlx5_bond_0!compute +counter_saturated/info@mlx5_1 +counters_since_boot/info <warn"),
];

#[test]
fn every_real_capture_is_concluded_as_people_did() {
    let Some(root) = root() else {
        eprintln!(
            "SKIP: there is no collection of captures beside the workspace, and RAILMESH_CORPUS names none"
        );
        return;
    };
    let mut failures = Vec::new();
    let mut seen = BTreeMap::new();
    println!(
        "{:<6} {:>4} {:>4} {:>5} {:>4} {:>4} {:>4}  result",
        "file", "GPUs", "HCAs", "pairs", "info", "warn", "fail"
    );
    for path in files(&root) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some((key, expected)) = EXPECTED.iter().find(|(key, _)| name.starts_with(key)) else { continue };
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let mut inventory = Inventory::default();
        import(&mut inventory, &name, &text);
        let assessment = assess(&inventory);
        let broken: Vec<&str> =
            expected.split(' ').filter(|word| !holds(word, &inventory, &assessment)).collect();
        let count =
            |severity| assessment.findings.iter().filter(|finding| finding.severity == severity).count();
        let pairs = assessment.pairs.iter().filter(|pair| pair.hca.is_some()).count();
        let result =
            if broken.is_empty() { "as expected".to_owned() } else { format!("NOT: {}", broken.join(" ")) };
        println!(
            "{key:<6} {:>4} {:>4} {pairs:>5} {:>4} {:>4} {:>4}  {result}",
            inventory.gpus.len(),
            inventory.hcas.len(),
            count(Severity::Info),
            count(Severity::Warn),
            count(Severity::Fail),
        );
        if !broken.is_empty() {
            failures.push(format!("{name}: {}", broken.join(" ")));
        }
        seen.insert(*key, ());
    }
    for (key, _) in EXPECTED.iter().filter(|(key, _)| !seen.contains_key(key)) {
        eprintln!("SKIP: {key} is not in the collection at {}", root.display());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn root() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let root = std::env::var_os("RAILMESH_CORPUS").map_or_else(beside, PathBuf::from);
    root.is_dir().then_some(root)
}

/// The files of all folders of the collection, by name.
fn files(root: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(root)
        .expect("the collection can be read")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir());
    let mut files: Vec<PathBuf> = folders
        .flat_map(|folder| {
            std::fs::read_dir(folder).expect("its folders too").flatten().map(|entry| entry.path())
        })
        .collect();
    files.sort_by_key(|path| path.file_name().map(std::ffi::OsStr::to_owned));
    files
}

fn holds(word: &str, inventory: &Inventory, assessment: &Assessment) -> bool {
    let role = |name: &str, role: &str| {
        let of = |id: bench_core::topology::HcaId| inventory.hca(id).title() == name;
        assert!(inventory.hcas.iter().any(|hca| hca.title() == name), "{name} is no HCA");
        assessment.ports.iter().any(|port| of(port.hca) && port.role.name() == role)
    };
    if let Some(kind) = word.strip_prefix('+') {
        return finding(kind, assessment);
    }
    if let Some(kind) = word.strip_prefix('-') {
        return !finding(kind, assessment);
    }
    if let Some(severity) = word.strip_prefix('<') {
        let limit = if severity == "fail" { Severity::Fail } else { Severity::Warn };
        return assessment.findings.iter().all(|finding| finding.severity < limit);
    }
    if let Some(text) = word.strip_prefix('?') {
        return assessment.missing.iter().any(|gap| gap.what.contains(text));
    }
    if let Some((name, wanted)) = word.split_once('=') {
        return role(name, wanted);
    }
    if let Some((gpu, hca)) = word.split_once('>') {
        let pair = pair(gpu, assessment);
        let named = pair.and_then(|pair| pair.hca).map(|id| inventory.hca(id).title());
        return pair.is_some() && named == Some(hca).filter(|hca| *hca != "?");
    }
    if let Some(gpu) = word.strip_suffix('~') {
        return pair(gpu, assessment).is_some_and(|pair| pair.confidence <= Confidence::Assumed);
    }
    if let Some(gpu) = word.strip_suffix('!') {
        return pair(gpu, assessment).is_some_and(|pair| pair.confidence == Confidence::Proven);
    }
    let (name, unwanted) = word.split_once('!').unwrap_or_else(|| panic!("{word} is no word"));
    !role(name, unwanted)
}

fn pair<'a>(gpu: &str, assessment: &'a Assessment) -> Option<&'a bench_core::topology::Pairing> {
    let index: u16 = gpu.parse().expect("a word begins with the number of a GPU");
    assessment.pairs.iter().find(|pair| pair.gpu == index)
}

/// `kind`, `kind/severity`, `kind@place`, `kind/severity@place`; a place is one of those that the finding names.
fn finding(word: &str, assessment: &Assessment) -> bool {
    let (word, place) = word.split_once('@').map_or((word, None), |(word, place)| (word, Some(place)));
    let (kind, severity) =
        word.split_once('/').map_or((word, None), |(kind, severity)| (kind, Some(severity)));
    assessment.findings.iter().any(|finding| {
        let named = |place: &str| finding.place.split([',', ' ']).any(|part| part == place);
        finding.kind == kind
            && severity.is_none_or(|severity| finding.severity.name() == severity)
            && place.is_none_or(named)
    })
}

/// The words themselves can fail: a conclusion that is wrong is not taken for right.
#[test]
fn a_wrong_conclusion_does_not_hold() {
    let mut inventory = Inventory::default();
    import(
        &mut inventory,
        "",
        "\tGPU0\tGPU1\tmlx5_3\tmlx5_4\nGPU0\t X \tNV4\tPIX\tSYS\nGPU1\tNV4\t X \tSYS\tPIX\n",
    );
    let assessment = assess(&inventory);
    for right in
        ["0>mlx5_3", "0!", "mlx5_3=compute", "+nvlink_uniform/info", "-tree_hidden", "<warn", "?state"]
    {
        assert!(holds(right, &inventory, &assessment), "{right}");
    }
    for wrong in [
        "0>mlx5_4",
        "0>?",
        "0~",
        "mlx5_3!compute",
        "+nvlink_uniform/fail",
        "+tree_hidden",
        "-nvlink_uniform",
        "?names",
        "9>?",
    ] {
        assert!(!holds(wrong, &inventory, &assessment), "{wrong}");
    }
}
