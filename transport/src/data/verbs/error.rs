//! A verb that failed: which, on what, with which errno, and what to do about it.

use bench_core::record::{Failure, FailureKind, Phase};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use thiserror::Error;

use super::errno;

/// A verb that returned an error.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{verb} {about} failed: {}", errno::text(*.errno))]
pub(super) struct VerbError {
    /// Which.
    pub(super) verb: Verb,
    /// On what, such as `of port 1 of mlx5_0`.
    pub(super) about: String,
    /// The error that it returned.
    pub(super) errno: Errno,
}

/// The verbs that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// Lists devices.
    GetDeviceList,
    /// Opens a device.
    OpenDevice,
    /// Closes one.
    CloseDevice,
    /// Asks a device for its limits.
    QueryDevice,
    /// Asks a port for its state.
    QueryPort,
    /// Asks for a row of the GID table.
    QueryGid,
    /// Asks for a row of the P_Key table.
    QueryPkey,
    /// Makes a protection domain.
    AllocPd,
    /// Gives it back.
    DeallocPd,
    /// Registers memory.
    RegMr,
    /// Registers memory of another device by its DMA-BUF.
    RegDmabufMr,
    /// Gives a registration back.
    DeregMr,
    /// Makes a completion queue.
    CreateCq,
    /// Gives it back.
    DestroyCq,
    /// Takes completions.
    PollCq,
    /// Makes a queue pair.
    CreateQp,
    /// Brings it into another state.
    ModifyQp,
    /// Gives it back.
    DestroyQp,
    /// Hands over requests to send, write or read.
    PostSend,
    /// Hands over receives.
    PostRecv,
}

impl Verb {
    /// The function's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::GetDeviceList => "ibv_get_device_list",
            Self::OpenDevice => "ibv_open_device",
            Self::CloseDevice => "ibv_close_device",
            Self::QueryDevice => "ibv_query_device",
            Self::QueryPort => "ibv_query_port",
            Self::QueryGid => "ibv_query_gid",
            Self::QueryPkey => "ibv_query_pkey",
            Self::AllocPd => "ibv_alloc_pd",
            Self::DeallocPd => "ibv_dealloc_pd",
            Self::RegMr => "ibv_reg_mr",
            Self::RegDmabufMr => "ibv_reg_dmabuf_mr",
            Self::DeregMr => "ibv_dereg_mr",
            Self::CreateCq => "ibv_create_cq",
            Self::DestroyCq => "ibv_destroy_cq",
            Self::PollCq => "ibv_poll_cq",
            Self::CreateQp => "ibv_create_qp",
            Self::ModifyQp => "ibv_modify_qp",
            Self::DestroyQp => "ibv_destroy_qp",
            Self::PostSend => "ibv_post_send",
            Self::PostRecv => "ibv_post_recv",
        }
    }
}

impl std::fmt::Display for Verb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl VerbError {
    /// What kind of failure it is for a cell.
    pub(super) fn kind(&self) -> FailureKind {
        match self.errno {
            Errno::TIMEDOUT => FailureKind::Timeout,
            Errno::IO => FailureKind::Crash,
            _ => FailureKind::Unsupported,
        }
    }

    /// What to do about it.
    pub(super) fn remedy(&self) -> String {
        match (self.verb, self.errno) {
            (Verb::RegMr | Verb::CreateCq | Verb::CreateQp, Errno::NOMEM | Errno::AGAIN | Errno::PERM) => {
                memlock_remedy()
            }
            (Verb::CreateCq | Verb::CreateQp, Errno::INVAL) => {
                "it is more than the device has: ask for fewer queue pairs (-q), less depth (--tx-depth) or less inline \
                 data (-I); `ibv_devinfo -v` shows the limits"
                    .to_owned()
            }
            (Verb::RegMr | Verb::RegDmabufMr, Errno::FAULT) => {
                "the device cannot pin this memory: GPU memory needs nvidia_peermem or DMA-BUF".to_owned()
            }
            (Verb::RegDmabufMr, Errno::OPNOTSUPP | Errno::PROTONOSUPPORT | Errno::NOSYS) => {
                "the driver of this device takes no DMA-BUF: it needs a kernel with dma-buf for RDMA (5.12 or newer) and \
                 a device that supports it"
                    .to_owned()
            }
            (Verb::ModifyQp, Errno::TIMEDOUT) => {
                "the peer's address was not resolved in time: look whether the peer's GID answers from this rail's network \
                 device (`ping -I DEVICE ADDRESS`, `ip neigh`), and at VLAN and switch port"
                    .to_owned()
            }
            (Verb::ModifyQp, Errno::NETUNREACH | Errno::HOSTUNREACH) => {
                "no route leads from this rail's network device to the peer's address: give both rails addresses of one \
                 network, or a route (`ip route get ADDRESS from OWN_ADDRESS`)"
                    .to_owned()
            }
            (Verb::ModifyQp, Errno::INVAL | Errno::NODATA | Errno::NOENT) => {
                "the device refuses an attribute: compare GID index, MTU and P_Key with `show_gids` and `ibv_devinfo -v` \
                 on both nodes; a GID changes when its network device goes down or is readdressed"
                    .to_owned()
            }
            (Verb::QueryPort, Errno::INVAL) => "the device has no such port: see `ibv_devinfo`".to_owned(),
            (Verb::PostSend | Verb::PostRecv, Errno::INVAL | Errno::NOMEM) => {
                "the device refuses the request: lower depth (--tx-depth), post list (-l) or inline size (-I)".to_owned()
            }
            _ => "look at the kernel's log (`dmesg`) for this device, and compare driver and firmware versions".to_owned(),
        }
    }

    /// The failure of a cell that it is.
    pub(super) fn failure(&self, phase: Phase) -> Failure {
        Failure { kind: self.kind(), phase, detail: self.to_string(), remedy: Some(self.remedy()) }
    }
}

/// What to do where memory cannot be locked.
pub(super) fn memlock_remedy() -> String {
    let limit = getrlimit(Resource::Memlock).current;
    let told = limit.map_or_else(|| "unlimited".to_owned(), |bytes| format!("{} KiB", bytes >> 10));
    format!(
        "memory must be locked for RDMA, and the limit here is {told}: raise it (`ulimit -l unlimited`, LimitMEMLOCK=infinity \
         in a systemd unit, `--ulimit memlock=-1` for a container, IPC_LOCK for a pod); if it is unlimited, the node is out \
         of memory"
    )
}

/// Takes note of something that could not be given back: it stays with the process, and nothing that still needs it
/// breaks.
pub(super) fn leak(released: Result<(), VerbError>) {
    if let Err(error) = released {
        tracing::warn!("{error}: it is given back when the worker ends");
    }
}
