//! Whether this process can use RDMA devices, and if not, why and what to do.

use std::path::Path;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::devices::{DeviceList, DeviceName, Transport};
use super::error::VerbError;
use super::library::library;

/// A reason with its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Absent {
    /// What is missing.
    pub(super) reason: String,
    /// What to do.
    pub(super) remedy: String,
}

impl Absent {
    fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: remedy.into() }
    }
}

impl std::fmt::Display for Absent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.reason, self.remedy)
    }
}

/// Looks whether at least one device of InfiniBand or RoCE opens.
///
/// # Errors
/// [`Absent`] where none does, about the first of them.
pub(super) fn usable() -> Result<(), Absent> {
    let list = devices()?;
    let names = list.names();
    let mut first = None;
    for device in names.iter().filter(|device| device.transport == Transport::InfiniBand) {
        match list.open(&device.name) {
            Some(Ok(_)) => return Ok(()),
            Some(Err(error)) => {
                first.get_or_insert_with(|| does_not_open(device, &error));
            }
            None => {}
        }
    }
    Err(first.unwrap_or_else(|| no_device(&names)))
}

/// The devices of this node.
///
/// # Errors
/// [`Absent`] without library or kernel support.
pub(super) fn devices() -> Result<DeviceList, Absent> {
    let symbols = library().map_err(|error| {
        Absent::new(
            error.to_string(),
            "install the RDMA user space (Debian and Ubuntu: libibverbs1 and ibverbs-providers; RHEL: libibverbs), or \
             start the worker where it is installed",
        )
    })?;
    DeviceList::read(symbols).map_err(|error| match error.errno {
        Errno::NOSYS => Absent::new(
            format!("the kernel has no RDMA support loaded: {error}"),
            "load the driver of the HCA and ib_uverbs (`modprobe ib_uverbs mlx5_ib`), and mount sysfs in a container",
        ),
        _ => Absent::new(error.to_string(), "look at the kernel's log (`dmesg`) for the RDMA drivers"),
    })
}

fn no_device(names: &[DeviceName]) -> Absent {
    if names.is_empty() {
        Absent::new(
            "libibverbs finds no RDMA device",
            "look for the HCA with `ls /sys/class/infiniband`: if it is there, its user-space driver is missing (install \
             ibverbs-providers); if not, load its kernel driver or give it to this container",
        )
    } else {
        let list: Vec<&str> = names.iter().map(|device| device.name.as_str()).collect();
        Absent::new(
            format!("no device speaks InfiniBand or RoCE: {} speak something else", list.join(", ")),
            "measure them with the TCP tests",
        )
    }
}

/// Why a device that is listed does not open.
pub(super) fn does_not_open(device: &DeviceName, error: &VerbError) -> Absent {
    let path = Path::new(FOLDER).join(&device.uverbs);
    let shown = path.display();
    match access(&path, Access::READ_OK | Access::WRITE_OK) {
        Err(Errno::NOENT) => Absent::new(
            format!("{} cannot be opened: there is no {shown}", device.name),
            format!(
                "load ib_uverbs; in a container pass the device in (`--device {shown}`, or the RDMA device plugin of \
                 Kubernetes)"
            ),
        ),
        Err(Errno::ACCESS | Errno::PERM) => Absent::new(
            format!("{} cannot be opened: no permission to read and write {shown}", device.name),
            format!(
                "run as root or as a member of the group that owns {shown} (often rdma); look at the container's device rules"
            ),
        ),
        Ok(()) | Err(_) => Absent::new(
            error.to_string(),
            "look at the container's device rules (devices cgroup) and at the kernel's log (`dmesg`) for this device",
        ),
    }
}

/// Where the kernel's RDMA devices are.
const FOLDER: &str = "/dev/infiniband";

#[cfg(test)]
mod tests {
    use super::super::error::Verb;
    use super::*;

    #[test]
    fn a_device_without_its_file_is_told_with_the_file() {
        let device = DeviceName {
            name: "mlx5_0".to_owned(),
            uverbs: "uverbs-none".to_owned(),
            transport: Transport::InfiniBand,
        };
        let error = VerbError { verb: Verb::OpenDevice, about: "of mlx5_0".to_owned(), errno: Errno::NOENT };
        let absent = does_not_open(&device, &error);
        assert_eq!(absent.reason, "mlx5_0 cannot be opened: there is no /dev/infiniband/uverbs-none");
        assert!(absent.remedy.contains("--device /dev/infiniband/uverbs-none"), "{absent}");
    }

    #[test]
    fn devices_of_another_kind_are_named() {
        let iwarp =
            DeviceName { name: "iw0".to_owned(), uverbs: "uverbs0".to_owned(), transport: Transport::Other };
        assert!(no_device(&[iwarp]).reason.contains("iw0"));
        assert!(no_device(&[]).reason.contains("no RDMA device"));
    }
}
