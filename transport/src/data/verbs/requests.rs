//! Lists of requests, made once and handed over again and again: the hot loops only change number and signal.

use std::ptr;
use std::sync::Arc;

use bench_core::verbs::RemoteMemory;

use super::region::Region;
use super::sys::constants::{opcode, send_flag};
use super::sys::{RdmaTarget, RecvWr, SendWr, Sge};

/// What a request does with a piece of memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// Puts it into the peer's memory, at this offset.
    Write(RemoteMemory, u64),
    /// The same, and the peer gets a completion.
    WriteImm(RemoteMemory, u64),
    /// Fills it from the peer's memory, from this offset.
    Read(RemoteMemory, u64),
    /// Sends it to a receive of the peer.
    Send,
}

/// How the bytes of a request leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carriage {
    /// The device fetches them.
    Fetched,
    /// The processor copies them into the request.
    Inline,
}

/// Whether a request makes a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// It does, and tells that all before it are done too.
    Yes,
    /// It does not.
    No,
}

/// Linked requests of one kind on one piece of memory.
pub(super) struct SendList {
    requests: Box<[SendWr]>,
    /// The piece that all point to.
    _piece: Box<Sge>,
    flags: u32,
    _region: Arc<Region>,
}

// SAFETY: the pointers in it lead to its own boxes, which do not move.
unsafe impl Send for SendList {}

impl SendList {
    /// `count` linked requests on `length` bytes at `offset` of `region`.
    ///
    /// # Panics
    /// If the piece does not lie inside the region.
    pub(super) fn new(
        region: &Arc<Region>,
        (offset, length): (usize, usize),
        action: Action,
        carriage: Carriage,
        count: usize,
    ) -> Self {
        let mut piece = Box::new(region.piece(offset, length));
        let (opcode, rdma) = match action {
            Action::Write(memory, at) => (opcode::RDMA_WRITE, target(memory, at)),
            Action::WriteImm(memory, at) => (opcode::RDMA_WRITE_WITH_IMM, target(memory, at)),
            Action::Read(memory, at) => (opcode::RDMA_READ, target(memory, at)),
            Action::Send => (opcode::SEND, RdmaTarget::default()),
        };
        let flags = match carriage {
            Carriage::Fetched => 0,
            Carriage::Inline => send_flag::INLINE,
        };
        let mut one = SendWr::default();
        one.sg_list = &raw mut *piece;
        one.num_sge = i32::from(length > 0);
        one.opcode = opcode;
        one.send_flags = flags;
        one.rdma = rdma;
        let mut list = Self {
            requests: vec![one; count.max(1)].into(),
            _piece: piece,
            flags,
            _region: Arc::clone(region),
        };
        (1..list.requests.len()).for_each(|n| list.join(n));
        list
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Numbers a request and says whether it makes a completion.
    ///
    /// # Panics
    /// If there is no such request.
    #[inline]
    pub(super) fn set(&mut self, position: usize, id: u64, signal: Signal) {
        let request = &mut self.requests[position];
        request.wr_id = id;
        request.send_flags = match signal {
            Signal::Yes => self.flags | send_flag::SIGNALED,
            Signal::No => self.flags,
        };
    }

    /// The first of `count` linked requests.
    #[inline]
    pub(super) fn head(&mut self, count: usize) -> *mut SendWr {
        if let Some(last) = count.checked_sub(1).and_then(|last| self.requests.get_mut(last)) {
            last.next = ptr::null_mut();
        }
        self.requests.as_mut_ptr()
    }

    /// Links the request before `count` with the one at it again.
    #[inline]
    pub(super) fn join(&mut self, count: usize) {
        if count > 0 && count < self.requests.len() {
            let next = self.requests.as_mut_ptr().wrapping_add(count);
            self.requests[count - 1].next = next;
        }
    }
}

/// Linked receives of one piece of memory.
pub(super) struct RecvList {
    receives: Box<[RecvWr]>,
    _piece: Box<Sge>,
    _region: Arc<Region>,
}

// SAFETY: the pointers in it lead to its own boxes, which do not move.
unsafe impl Send for RecvList {}

impl RecvList {
    /// `count` linked receives into `length` bytes at `offset` of `region`, all with this number.
    ///
    /// # Panics
    /// If the piece does not lie inside the region.
    pub(super) fn new(region: &Arc<Region>, (offset, length): (usize, usize), id: u64, count: usize) -> Self {
        let mut piece = Box::new(region.piece(offset, length));
        let one = RecvWr {
            wr_id: id,
            next: ptr::null_mut(),
            sg_list: &raw mut *piece,
            num_sge: i32::from(length > 0),
        };
        let mut list =
            Self { receives: vec![one; count.max(1)].into(), _piece: piece, _region: Arc::clone(region) };
        (1..list.receives.len()).for_each(|n| list.join(n));
        list
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.receives.len()
    }

    /// The first of `count` linked receives.
    #[inline]
    pub(super) fn head(&mut self, count: usize) -> *mut RecvWr {
        if let Some(last) = count.checked_sub(1).and_then(|last| self.receives.get_mut(last)) {
            last.next = ptr::null_mut();
        }
        self.receives.as_mut_ptr()
    }

    /// Links the receive before `count` with the one at it again.
    #[inline]
    pub(super) fn join(&mut self, count: usize) {
        if count > 0 && count < self.receives.len() {
            let next = self.receives.as_mut_ptr().wrapping_add(count);
            self.receives[count - 1].next = next;
        }
    }
}

fn target(memory: RemoteMemory, offset: u64) -> RdmaTarget {
    RdmaTarget::new(memory.address + offset, memory.rkey)
}
