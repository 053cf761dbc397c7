//! A queue pair of a reliable connection, from its making to "ready to send".
//!
//! | from | to | by | then |
//! |---|---|---|---|
//! | - | RESET | [`QueuePair::new`] | it has a number, by which the peer addresses it |
//! | RESET | INIT, RTR, RTS | [`QueuePair::connect`] | it answers its peer, and sends; receives can be posted |
//! | any | ERR | the device, after a failed request | everything under way is flushed |

use std::ptr::{self, NonNull};
use std::sync::Arc;

use bench_core::verbs::{GidRow, PathMtu, QueuePairAddress};

use super::completion_queue::CompletionQueue;
use super::error::{VerbError, leak};
use super::protection_domain::ProtectionDomain;
use super::requests::{RecvList, SendList};
use super::result;
use super::sys::constants::{QPT_RC, access, qp_mask, qp_state};
use super::sys::{AhAttr, Gid, GlobalRoute, Qp, QpAttr, QpCap, QpInitAttr};

/// A queue pair. Its queues and its domain outlive it.
pub(super) struct QueuePair {
    pd: Arc<ProtectionDomain>,
    _cq: Arc<CompletionQueue>,
    qp: NonNull<Qp>,
    address: QueuePairAddress,
    cap: QpCap,
}

// SAFETY: a queue pair may be used by any thread, one at a time, and posting takes `&mut self`.
unsafe impl Send for QueuePair {}

/// What is asked of a queue pair when it is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes {
    /// Sends, writes and reads that can be under way.
    pub(super) sends: u32,
    /// Receives that can be posted.
    pub(super) receives: u32,
    /// Largest message that travels inside its request.
    pub(super) inline_bytes: u32,
    /// The first packet sequence number that it sends, 24 bits.
    pub(super) psn: u32,
}

/// The way to the peer's queue pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    /// The peer's queue pair.
    pub(super) peer: QueuePairAddress,
    /// The port of the device, from 1.
    pub(super) port: u8,
    /// Index of the P_Key.
    pub(super) pkey_index: u16,
    /// The largest payload of a packet.
    pub(super) mtu: PathMtu,
    /// The peer's LID; 0 on RoCE.
    pub(super) lid: u16,
    /// Own and peer's GID, where packets carry them.
    pub(super) global: Option<(GidRow, GidRow)>,
    /// Service level.
    pub(super) service_level: u8,
    /// Traffic class; only with GIDs.
    pub(super) traffic_class: u8,
    /// Flow label; only with GIDs.
    pub(super) flow_label: u32,
    /// Reads that this end may have under way.
    pub(super) reads_out: u8,
    /// Reads that this end answers at the same time.
    pub(super) reads_in: u8,
    /// Local ACK timeout, 4.096 us x 2^this.
    pub(super) timeout: u8,
    /// Retries of a packet that is not acknowledged.
    pub(super) retry_count: u8,
    /// Retries where the peer has no receive posted.
    pub(super) rnr_retry: u8,
}

impl QueuePair {
    /// Makes a queue pair whose completions go to `cq`.
    ///
    /// # Errors
    /// [`VerbError`].
    pub(super) fn new(
        pd: &Arc<ProtectionDomain>,
        cq: &Arc<CompletionQueue>,
        wishes: &Wishes,
    ) -> Result<Self, VerbError> {
        let mut init = QpInitAttr {
            qp_context: ptr::null_mut(),
            send_cq: cq.as_ptr().as_ptr(),
            recv_cq: cq.as_ptr().as_ptr(),
            srq: ptr::null_mut(),
            cap: QpCap {
                max_send_wr: wishes.sends,
                max_recv_wr: wishes.receives,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: wishes.inline_bytes,
            },
            qp_type: QPT_RC,
            sq_sig_all: 0,
        };
        let context = pd.context();
        // SAFETY: the queue pair holds domain and queue.
        let qp = unsafe { result::create_qp(context.symbols(), pd.as_ptr(), &mut init, context.name()) }?;
        // SAFETY: just made; a plain field.
        let number = unsafe { (*qp.as_ptr()).qp_num };
        Ok(Self {
            pd: Arc::clone(pd),
            _cq: Arc::clone(cq),
            qp,
            address: QueuePairAddress { number, psn: wishes.psn },
            cap: init.cap,
        })
    }

    /// How the peer reaches it.
    pub(super) fn address(&self) -> QueuePairAddress {
        self.address
    }

    /// Largest message that travels inside its request, as the device granted it.
    pub(super) fn inline_bytes(&self) -> u32 {
        self.cap.max_inline_data
    }

    fn init(&mut self, route: &Route) -> Result<(), VerbError> {
        let mut attr = QpAttr {
            qp_state: qp_state::INIT,
            pkey_index: route.pkey_index,
            port_num: route.port,
            qp_access_flags: access::LOCAL_WRITE | access::REMOTE_WRITE | access::REMOTE_READ,
            ..QpAttr::default()
        };
        let mask = qp_mask::STATE | qp_mask::PKEY_INDEX | qp_mask::PORT | qp_mask::ACCESS_FLAGS;
        let (port, pkey) = (route.port, route.pkey_index);
        self.modify(&mut attr, mask, || format!("RESET to INIT with port {port}, P_Key index {pkey}"))
    }

    /// Connects to the peer's queue pair: answers from here on, and may send.
    ///
    /// # Errors
    /// [`VerbError`] that tells the states and the attributes.
    pub(super) fn connect(&mut self, route: &Route) -> Result<(), VerbError> {
        self.init(route)?;
        self.ready_to_receive(route)?;
        self.ready_to_send(route)
    }

    fn ready_to_receive(&mut self, route: &Route) -> Result<(), VerbError> {
        let mut attr = QpAttr {
            qp_state: qp_state::RTR,
            path_mtu: mtu_code(route.mtu),
            dest_qp_num: route.peer.number,
            rq_psn: route.peer.psn,
            max_dest_rd_atomic: route.reads_in,
            min_rnr_timer: MIN_RNR_TIMER,
            ah_attr: address_of(route),
            ..QpAttr::default()
        };
        let mask = qp_mask::STATE
            | qp_mask::AV
            | qp_mask::PATH_MTU
            | qp_mask::DEST_QPN
            | qp_mask::RQ_PSN
            | qp_mask::MAX_DEST_RD_ATOMIC
            | qp_mask::MIN_RNR_TIMER;
        self.modify(&mut attr, mask, || format!("INIT to RTR with {}", told(route)))
    }

    fn ready_to_send(&mut self, route: &Route) -> Result<(), VerbError> {
        let mut attr = QpAttr {
            qp_state: qp_state::RTS,
            timeout: route.timeout,
            retry_cnt: route.retry_count,
            rnr_retry: route.rnr_retry,
            sq_psn: self.address.psn,
            max_rd_atomic: route.reads_out,
            ..QpAttr::default()
        };
        let mask = qp_mask::STATE
            | qp_mask::TIMEOUT
            | qp_mask::RETRY_CNT
            | qp_mask::RNR_RETRY
            | qp_mask::SQ_PSN
            | qp_mask::MAX_QP_RD_ATOMIC;
        self.modify(&mut attr, mask, || {
            format!(
                "RTR to RTS with timeout {}, retries {}, RNR retries {}, reads {}",
                route.timeout, route.retry_count, route.rnr_retry, route.reads_out
            )
        })
    }

    fn modify(
        &mut self,
        attr: &mut QpAttr,
        mask: u32,
        step: impl FnOnce() -> String,
    ) -> Result<(), VerbError> {
        let context = self.pd.context();
        let number = self.address.number;
        // SAFETY: the queue pair lives.
        unsafe {
            result::modify_qp(context.symbols(), self.qp, attr, mask, || {
                format!("of queue pair {number} on {} from {}", context.name(), step())
            })
        }
    }

    /// Hands over the first `count` requests of a list.
    ///
    /// # Errors
    /// [`VerbError`], such as ENOMEM where more are under way than was asked for.
    #[inline]
    pub(super) fn post_send(&mut self, list: &mut SendList, count: usize) -> Result<(), VerbError> {
        let head = list.head(count);
        // SAFETY: the list ends after `count` requests and lives over the call; its memory stays registered while the
        // list lives, and a registration that is given back stops the device. `&mut self` keeps other threads away.
        let posted = unsafe { result::post_send(self.qp, head, self.pd.context().name()) };
        list.join(count);
        posted
    }

    /// Hands over the first `count` receives of a list.
    ///
    /// # Errors
    /// [`VerbError`].
    #[inline]
    pub(super) fn post_recv(&mut self, list: &mut RecvList, count: usize) -> Result<(), VerbError> {
        let head = list.head(count);
        // SAFETY: as for `post_send`.
        let posted = unsafe { result::post_recv(self.qp, head, self.pd.context().name()) };
        list.join(count);
        posted
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        let context = self.pd.context();
        // SAFETY: it is not used after. The device stops before the verb returns.
        let freed = unsafe { result::destroy_qp(context.symbols(), self.qp, context.name()) };
        leak(freed);
    }
}

fn address_of(route: &Route) -> AhAttr {
    let base = AhAttr { dlid: route.lid, sl: route.service_level, port_num: route.port, ..AhAttr::default() };
    match route.global {
        None => base,
        Some((own, peer)) => AhAttr {
            is_global: 1,
            grh: GlobalRoute {
                dgid: Gid { raw: peer.gid.0 },
                flow_label: route.flow_label,
                sgid_index: own.index,
                hop_limit: HOP_LIMIT,
                traffic_class: route.traffic_class,
            },
            ..base
        },
    }
}

fn told(route: &Route) -> String {
    let to = match route.global {
        None => format!("LID {}", route.lid),
        Some((own, peer)) => format!("{own} to {}", peer.gid),
    };
    format!(
        "path MTU {}, peer's queue pair {}, {to}, SL {}, reads {}",
        route.mtu.bytes(),
        route.peer.number,
        route.service_level,
        route.reads_in
    )
}

/// The number of `enum ibv_mtu`.
fn mtu_code(mtu: PathMtu) -> u32 {
    match mtu {
        PathMtu::B256 => 1,
        PathMtu::B512 => 2,
        PathMtu::B1024 => 3,
        PathMtu::B2048 => 4,
        PathMtu::B4096 => 5,
    }
}

/// How long a sender waits after "no receive posted": 0.64 ms, as perftest (IBTA volume 1, table 45).
const MIN_RNR_TIMER: u8 = 12;
/// Routers on the way: as many as there can be, as perftest.
const HOP_LIMIT: u8 = 0xff;
