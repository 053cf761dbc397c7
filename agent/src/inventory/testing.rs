//! Captured trees, made in tests: small machines whose topology is known.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use bench_core::topology::{Assessment, Inventory, assess};

use super::topology::read_topology;

/// A machine below a temporary root.
pub(in crate::inventory) struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    pub(in crate::inventory) fn new() -> Self {
        let machine = Self { root: tempfile::tempdir().expect("a file or folder below the temporary root") };
        fs::create_dir_all(machine.path("sys/bus/pci/devices"))
            .expect("a file or folder below the temporary root");
        fs::create_dir_all(machine.path("proc/net")).expect("a file or folder below the temporary root");
        machine
    }

    pub(in crate::inventory) fn root(&self) -> &Path {
        self.root.path()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    pub(in crate::inventory) fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a file or folder below the temporary root"))
            .expect("a file or folder below the temporary root");
        fs::write(path, format!("{text}\n")).expect("a file or folder below the temporary root");
    }

    pub(in crate::inventory) fn link(&self, path: &str, target: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a file or folder below the temporary root"))
            .expect("a file or folder below the temporary root");
        symlink(target, path).expect("a file or folder below the temporary root");
    }

    /// A PCI device at `place` below the host bridge, such as `pci0000:15/0000:15:01.0/0000:16:00.0`.
    pub(in crate::inventory) fn pci(&self, place: &str, vendor: &str, class: &str, numa: i32) -> String {
        let address = place.rsplit('/').next().expect("a file or folder below the temporary root");
        self.link(&format!("sys/bus/pci/devices/{address}"), &format!("../../../devices/{place}"));
        let folder = format!("sys/devices/{place}");
        self.file(&format!("{folder}/vendor"), vendor);
        self.file(&format!("{folder}/class"), class);
        self.file(&format!("{folder}/numa_node"), &numa.to_string());
        folder
    }

    pub(in crate::inventory) fn gpu(&self, place: &str, numa: i32) {
        let folder = self.pci(place, "0x10de", "0x030200", numa);
        self.file(&format!("{folder}/local_cpulist"), if numa == 1 { "8-15" } else { "0-7" });
        let address = place.rsplit('/').next().expect("a file or folder below the temporary root");
        let facts = "Model: \t\t NVIDIA X100\nIRQ:   \t\t 100\nGPU UUID: \t GPU-abc";
        self.file(&format!("proc/driver/nvidia/gpus/{address}/information"), facts);
    }

    /// An HCA with one port.
    pub(in crate::inventory) fn hca(&self, name: &str, place: &str, numa: i32, port: &Port) {
        let folder = self.pci(place, "0x15b3", "0x020700", numa);
        fs::create_dir_all(self.path(&format!("{folder}/driver-of/mlx5_core")))
            .expect("a file or folder below the temporary root");
        self.link(&format!("{folder}/driver"), "driver-of/mlx5_core");
        let device = format!("{folder}/infiniband/{name}");
        self.file(&format!("{device}/hca_type"), "MT4129");
        self.file(&format!("{device}/fw_ver"), "28.1");
        self.file(
            &format!("{device}/sys_image_guid"),
            &format!(
                "0000:0000:0000:{:04x}",
                name.len() * 256 + place.len() + usize::from(name.as_bytes()[name.len() - 1])
            ),
        );
        self.link(
            &format!("{device}/device"),
            &format!(
                "../../../{}",
                place.rsplit('/').next().expect("a file or folder below the temporary root")
            ),
        );
        let ports = format!("{device}/ports/1");
        self.file(&format!("{ports}/link_layer"), port.layer);
        self.file(&format!("{ports}/state"), port.state);
        self.file(&format!("{ports}/phys_state"), "5: LinkUp");
        self.file(&format!("{ports}/rate"), port.rate);
        self.file(&format!("{ports}/lid"), port.lid);
        self.file(&format!("{ports}/sm_lid"), "0x1");
        self.file(&format!("{ports}/counters/link_downed"), "3");
        self.file(&format!("{ports}/gids/0"), "fe80:0000:0000:0000:0000:0000:0000:0001");
        self.file(&format!("{ports}/gids/1"), "0000:0000:0000:0000:0000:0000:0000:0000");
        self.file(&format!("{ports}/gids/3"), "0000:0000:0000:0000:0000:ffff:0a00:0001");
        self.file(&format!("{ports}/gid_attrs/types/3"), "RoCE v2");
        fs::create_dir_all(self.path(&format!("{folder}/net/{}", port.netdev)))
            .expect("a file or folder below the temporary root");
        self.file(&format!("sys/class/net/{}/operstate", port.netdev), "up");
        self.link(
            &format!("sys/class/infiniband/{name}"),
            &format!("../../devices/{place}/infiniband/{name}"),
        );
    }

    pub(in crate::inventory) fn read(&self) -> (Inventory, Assessment) {
        let inventory = read_topology(self.root.path());
        let assessment = assess(&inventory);
        (inventory, assessment)
    }
}

/// What a port's files say.
pub(in crate::inventory) struct Port {
    pub(in crate::inventory) layer: &'static str,
    pub(in crate::inventory) state: &'static str,
    pub(in crate::inventory) rate: &'static str,
    pub(in crate::inventory) lid: &'static str,
    pub(in crate::inventory) netdev: &'static str,
}

pub(in crate::inventory) fn rail(netdev: &'static str) -> Port {
    Port { layer: "InfiniBand", state: "4: ACTIVE", rate: "400 Gb/sec (4X NDR)", lid: "0x1f", netdev }
}

/// Two GPUs below a switch each with the HCA of a name that suggests the opposite order; a front-end apart.
pub(in crate::inventory) fn healthy() -> Machine {
    let machine = Machine::new();
    machine.gpu("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0", 0);
    machine.hca("mlx5_8", "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0", 0, &rail("ibx8"));
    machine.gpu("pci0000:97/0000:97:01.0/0000:98:00.0/0000:99:00.0/0000:9a:00.0", 1);
    machine.hca("mlx5_3", "pci0000:97/0000:97:01.0/0000:98:00.0/0000:99:01.0/0000:9b:00.0", 1, &rail("ibx3"));
    let front = Port {
        layer: "Ethernet",
        state: "4: ACTIVE",
        rate: "100 Gb/sec (4X EDR)",
        lid: "0x0",
        netdev: "eth0",
    };
    machine.hca("mlx5_0", "pci0000:37/0000:37:01.0/0000:38:00.0", 0, &front);
    machine.file("proc/net/route", "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000");
    machine
}
