//! The statuses of a completion: what each means, which part is at fault, and what to do.

use std::fmt;

use crate::record::FailureKind;

/// The status of a completion (`enum ibv_wc_status` of verbs.h; IBTA volume 1, 11.6.2 for the causes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WcStatus {
    /// Done.
    Success,
    /// The receive is shorter than the message.
    LocalLength,
    /// The queue pair cannot do what the request asks.
    LocalQpOperation,
    /// As above, for reliable datagrams.
    LocalEecOperation,
    /// The request names memory that is not registered for it.
    LocalProtection,
    /// The queue pair was in its error state already.
    Flushed,
    /// A memory window could not be bound.
    MemoryWindowBind,
    /// The answer makes no sense.
    BadResponse,
    /// The data that arrived may not be written here.
    LocalAccess,
    /// The peer cannot take such a request.
    RemoteInvalidRequest,
    /// The peer's memory does not allow it.
    RemoteAccess,
    /// The peer failed while it did it.
    RemoteOperation,
    /// The peer did not acknowledge after all retransmissions.
    RetryExceeded,
    /// The peer had no receive posted after all tries.
    RnrRetryExceeded,
    /// Reliable datagrams: another domain.
    LocalRdDomain,
    /// Reliable datagrams: the peer cannot take such a request.
    RemoteInvalidRdRequest,
    /// The peer ended the operation.
    RemoteAborted,
    /// Reliable datagrams: no such end-to-end context.
    InvalidEecNumber,
    /// Reliable datagrams: the end-to-end context is in another state.
    InvalidEecState,
    /// The device failed.
    Fatal,
    /// The answer did not come in time.
    ResponseTimeout,
    /// Something else failed.
    General,
    /// Tag matching failed.
    TagMatching,
    /// Tag matching: software has to finish the rendezvous.
    TagMatchingIncomplete,
}

/// The part that a status points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultyPart {
    /// None.
    Nothing,
    /// What this end asked for: its program or its limits.
    ThisRequest,
    /// The registration of this end's memory.
    ThisMemory,
    /// This end's device, driver or firmware.
    ThisDevice,
    /// What lies between the two ends: address, partition, link, switch; or the peer is gone.
    Path,
    /// The peer's program.
    PeerProgram,
    /// The peer's memory: its keys, its bounds or its permissions.
    PeerMemory,
    /// The peer's device, driver or firmware.
    PeerDevice,
    /// An earlier completion of this queue pair tells.
    EarlierCompletion,
}

/// What is known of one status.
struct Entry {
    status: WcStatus,
    name: &'static str,
    kind: FailureKind,
    part: FaultyPart,
    cause: &'static str,
    remedy: &'static str,
}

impl WcStatus {
    /// The status of a number of `enum ibv_wc_status`; `None` above 23.
    pub fn of_code(code: u32) -> Option<Self> {
        usize::try_from(code).ok().and_then(|code| TABLE.get(code)).map(|entry| entry.status)
    }

    /// Every status; the position is its number.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|entry| entry.status)
    }

    /// Its number in `enum ibv_wc_status`.
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// Its name in verbs.h.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// What kind of failure it is for the cell.
    pub fn kind(self) -> FailureKind {
        self.entry().kind
    }

    /// The part that it points at.
    pub fn part(self) -> FaultyPart {
        self.entry().part
    }

    /// The likely cause, lowercase, no full stop.
    pub fn cause(self) -> &'static str {
        self.entry().cause
    }

    /// What to do.
    pub fn remedy(self) -> &'static str {
        self.entry().remedy
    }

    fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }
}

impl FaultyPart {
    /// The words for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::ThisRequest => "this end's request",
            Self::ThisMemory => "this end's memory registration",
            Self::ThisDevice => "this end's device",
            Self::Path => "the path, or a peer that is gone",
            Self::PeerProgram => "the peer's program",
            Self::PeerMemory => "the peer's memory",
            Self::PeerDevice => "the peer's device",
            Self::EarlierCompletion => "see the earlier completion",
        }
    }
}

impl fmt::Display for FaultyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A failed completion in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionError {
    /// What kind of failure.
    pub kind: FailureKind,
    /// The part that it points at; `None` for a status that this version does not know.
    pub part: Option<FaultyPart>,
    /// What happened, lowercase, no full stop, with name and numbers.
    pub text: String,
    /// What to do, where known.
    pub remedy: Option<String>,
}

/// Puts a failed completion into words, with the vendor's syndrome in decimal and hexadecimal: logs have either form.
pub fn describe_completion(status: u32, vendor_syndrome: u32) -> CompletionError {
    let syndrome = format!("vendor syndrome {vendor_syndrome} (0x{vendor_syndrome:02x})");
    match WcStatus::of_code(status) {
        Some(known) => CompletionError {
            kind: known.kind(),
            part: Some(known.part()),
            text: format!(
                "{} ({} {status}, {syndrome}; at fault: {})",
                known.cause(),
                known.name(),
                known.part()
            ),
            remedy: Some(known.remedy().to_owned()),
        },
        None => CompletionError {
            kind: FailureKind::Crash,
            part: None,
            text: format!("completion status {status}, which this version does not know ({syndrome})"),
            remedy: Some("look the number up in verbs.h of the installed rdma-core".to_owned()),
        },
    }
}

macro_rules! table {
    ($($status:ident $name:literal $kind:ident $part:ident: $cause:literal; $remedy:literal;)*) => {
        [$(Entry {
            status: WcStatus::$status,
            name: $name,
            kind: FailureKind::$kind,
            part: FaultyPart::$part,
            cause: $cause,
            remedy: $remedy,
        }),*]
    };
}

/// In the order of the numbers.
static TABLE: [Entry; 24] = table! {
    Success "IBV_WC_SUCCESS" Crash Nothing:
        "the operation is done";
        "nothing";
    LocalLength "IBV_WC_LOC_LEN_ERR" Unsupported ThisRequest:
        "a message is longer than the receive that it met, or than the port allows";
        "make both ends use the same message size; the port's max_msg_sz bounds it";
    LocalQpOperation "IBV_WC_LOC_QP_OP_ERR" Unsupported ThisRequest:
        "the queue pair refused the request as inconsistent: too many pieces, too much inline data, or a wrong state";
        "lower inline size and rd_atomic; if it stays, report it with driver and firmware version";
    LocalEecOperation "IBV_WC_LOC_EEC_OP_ERR" Unsupported ThisRequest:
        "an end-to-end context refused the request (reliable datagrams, which this tool does not use)";
        "report it with driver and firmware version";
    LocalProtection "IBV_WC_LOC_PROT_ERR" Unsupported ThisMemory:
        "the request names memory that is not registered, or not for this use";
        "check that the buffer was not freed or remapped; with GPU memory check peermem or DMA-BUF, and that the IOMMU lets the HCA reach it";
    Flushed "IBV_WC_WR_FLUSH_ERR" Crash EarlierCompletion:
        "the request was thrown away because the queue pair had failed before";
        "look at the first failed completion of this queue pair, and at the other end of the cell";
    MemoryWindowBind "IBV_WC_MW_BIND_ERR" Unsupported ThisMemory:
        "a memory window could not be bound (this tool binds none)";
        "report it with driver and firmware version";
    BadResponse "IBV_WC_BAD_RESP_ERR" Crash PeerDevice:
        "the peer answered with something that fits no request";
        "compare driver and firmware of both HCAs; look for packet corruption (symbol and CRC errors) on the way";
    LocalAccess "IBV_WC_LOC_ACCESS_ERR" Unsupported ThisMemory:
        "what arrived may not be written into this end's memory";
        "check the permissions of the registration; with GPU memory check peermem or DMA-BUF";
    RemoteInvalidRequest "IBV_WC_REM_INV_REQ_ERR" Unsupported PeerProgram:
        "the peer cannot take such a request: it is longer than its receive, or reads and atomics are not enabled or too many";
        "make both ends use the same message size and rd_atomic, and the same build";
    RemoteAccess "IBV_WC_REM_ACCESS_ERR" Unsupported PeerMemory:
        "the peer's memory does not allow it: wrong key, outside its bounds, or without permission";
        "check that both ends are of the same attempt and build; with GPU memory on the peer check its peermem or DMA-BUF";
    RemoteOperation "IBV_WC_REM_OP_ERR" Crash PeerDevice:
        "the peer failed while it did the operation";
        "look at the peer's kernel log for its HCA (page faults, IOMMU, PCIe errors)";
    RetryExceeded "IBV_WC_RETRY_EXC_ERR" Timeout Path:
        "no acknowledgement came after all retransmissions";
        "check that the peer's worker still runs, then link and counters of both ports and the switch between; on RoCE GID index, MTU, VLAN and PFC, on InfiniBand LID, SL and partition of both ends";
    RnrRetryExceeded "IBV_WC_RNR_RETRY_EXC_ERR" Timeout PeerProgram:
        "the peer had no receive posted after all tries";
        "the peer's worker is stuck or starved of processor time: look at its load and at the processors that it is pinned to";
    LocalRdDomain "IBV_WC_LOC_RDD_VIOL_ERR" Unsupported ThisRequest:
        "queue pair and end-to-end context are of different domains (reliable datagrams, which this tool does not use)";
        "report it with driver and firmware version";
    RemoteInvalidRdRequest "IBV_WC_REM_INV_RD_REQ_ERR" Unsupported PeerProgram:
        "the peer refused a reliable datagram, which this tool does not use";
        "report it with driver and firmware version";
    RemoteAborted "IBV_WC_REM_ABORT_ERR" Crash PeerProgram:
        "the peer ended the operation";
        "look for the end of the peer's worker: its agent reports exit code or signal";
    InvalidEecNumber "IBV_WC_INV_EECN_ERR" Unsupported ThisRequest:
        "there is no such end-to-end context (reliable datagrams, which this tool does not use)";
        "report it with driver and firmware version";
    InvalidEecState "IBV_WC_INV_EEC_STATE_ERR" Unsupported ThisRequest:
        "the end-to-end context is in another state (reliable datagrams, which this tool does not use)";
        "report it with driver and firmware version";
    Fatal "IBV_WC_FATAL_ERR" Crash ThisDevice:
        "the device failed";
        "look at the kernel log for this HCA; reset it or reboot the node, and have the card checked if it comes back";
    ResponseTimeout "IBV_WC_RESP_TIMEOUT_ERR" Timeout Path:
        "the peer's answer did not come in time";
        "check that the peer's worker still runs, then link and counters of both ports and the switch between";
    General "IBV_WC_GENERAL_ERR" Crash ThisDevice:
        "the device reports an error without a name";
        "look the vendor syndrome up, and look at the kernel log for this HCA";
    TagMatching "IBV_WC_TM_ERR" Unsupported ThisRequest:
        "tag matching failed (this tool does not use it)";
        "report it with driver and firmware version";
    TagMatchingIncomplete "IBV_WC_TM_RNDV_INCOMPLETE" Unsupported ThisRequest:
        "software has to finish a tag-matching rendezvous (this tool does not use it)";
        "report it with driver and firmware version";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_stands_at_its_number() {
        for (position, status) in WcStatus::all().enumerate() {
            assert_eq!(
                (status.code() as usize, WcStatus::of_code(position as u32)),
                (position, Some(status))
            );
        }
        assert_eq!(WcStatus::of_code(24), None);
    }

    // Numbers as verbs.h of rdma-core 44 has them.
    #[test]
    fn well_known_numbers_have_their_names() {
        for (code, name) in [
            (0, "IBV_WC_SUCCESS"),
            (1, "IBV_WC_LOC_LEN_ERR"),
            (4, "IBV_WC_LOC_PROT_ERR"),
            (5, "IBV_WC_WR_FLUSH_ERR"),
            (10, "IBV_WC_REM_ACCESS_ERR"),
            (12, "IBV_WC_RETRY_EXC_ERR"),
            (13, "IBV_WC_RNR_RETRY_EXC_ERR"),
            (19, "IBV_WC_FATAL_ERR"),
            (21, "IBV_WC_GENERAL_ERR"),
            (23, "IBV_WC_TM_RNDV_INCOMPLETE"),
        ] {
            assert_eq!(WcStatus::of_code(code).map(WcStatus::name), Some(name));
        }
    }

    #[test]
    fn a_completion_is_told_with_name_number_syndrome_part_and_remedy() {
        let told = describe_completion(12, 129);
        assert!(told.text.contains("IBV_WC_RETRY_EXC_ERR 12, vendor syndrome 129 (0x81)"), "{}", told.text);
        assert_eq!((told.kind, told.part), (FailureKind::Timeout, Some(FaultyPart::Path)));
        assert!(told.text.contains(FaultyPart::Path.name()));
        assert!(told.remedy.is_some_and(|remedy| remedy.contains("GID")));
        let unknown = describe_completion(77, 0);
        assert!(unknown.text.contains("77") && unknown.part.is_none(), "{}", unknown.text);
    }

    #[test]
    fn the_documentation_has_every_status_in_the_same_words() {
        let document = include_str!("../../../docs/verbs.md");
        for status in WcStatus::all() {
            let row = format!(
                "| {} | `{}` | {} | {} | {} |",
                status.code(),
                status.name(),
                status.cause(),
                status.part(),
                status.remedy()
            );
            assert!(document.contains(&row), "docs/verbs.md lacks this row:\n{row}");
        }
    }
}
