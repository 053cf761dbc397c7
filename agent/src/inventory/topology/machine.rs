//! Hypervisor, CPU and container.

use bench_core::topology::Platform;

use super::files::Tree;

/// Reads what is known of the machine. The begin of cpuinfo, which is its first CPU, is enough.
pub(super) fn read(tree: &Tree) -> Platform {
    let cpuinfo = tree.text("proc/cpuinfo").unwrap_or_default();
    let value = |key: &str| {
        let line =
            cpuinfo.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == key));
        line.map(|(_, value)| value.trim().to_owned())
    };
    let is_virtual = value("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let maker = || tree.text("sys/hypervisor/type").or_else(|| tree.text("sys/class/dmi/id/sys_vendor"));
    let container = CONTAINER_SIGNS.iter().find(|sign| tree.exists(sign));
    Platform {
        hypervisor: is_virtual.then(|| maker().unwrap_or_else(|| "of unknown make".to_owned())),
        cpu: value("model name"),
        container: container.map(|sign| format!("/{sign} exists")),
    }
}

/// Files that container runtimes make.
const CONTAINER_SIGNS: [&str; 3] = [".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io"];
