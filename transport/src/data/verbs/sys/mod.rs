//! The part of libibverbs' ABI that is used: its structures, its functions, and what its header has as inline functions.
//!
//! Written after `infiniband/verbs.h` of rdma-core 44 and 55; `tests` holds size and offsets.
#![allow(dead_code, reason = "structures and tables of the ABI are whole, used or not")]

mod attributes;
pub(crate) mod constants;
mod inline;
mod objects;
mod symbols;
mod work;

#[cfg(test)]
mod tests;

pub(crate) use attributes::{
    AhAttr, DeviceAttr, Gid, GidEntry, GlobalRoute, PortAttr, QpAttr, QpCap, QpInitAttr,
};
pub(crate) use inline::{poll_cq, post_recv, post_send, query_port};
pub(crate) use objects::{Context, Cq, Device, Mr, Pd, Qp};
pub(crate) use symbols::{LoadError, Symbols};
pub(crate) use work::{RdmaTarget, RecvWr, SendWr, Sge, Wc};
