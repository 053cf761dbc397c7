//! What a text or a set of flags says of the parameters of RDMA tests.
//!
//! ```toml
//! [rdma]
//! depth = 128
//! service_level = 1
//! memory = "huge_pages"
//! ```

use serde::{Deserialize, Serialize};

use super::PlanError;
use super::bounds::{self, within};
use crate::verbs::{FlowLabels, Memory, PathMtu, RdmaOptions};

/// The `[rdma]` table of a plan, or of one `[[test]]`. A field that says nothing is `None`; see [`RdmaOptions`] for
/// what they mean and for the defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RdmaSpec {
    /// 1 to 8192.
    pub depth: Option<u16>,
    /// 1 to 256.
    pub post_list: Option<u16>,
    /// 1 to 8192.
    pub cq_mod: Option<u16>,
    /// Up to 4096.
    pub inline_bytes: Option<u16>,
    /// 256, 512, 1024, 2048 or 4096.
    pub mtu: Option<PathMtu>,
    /// Up to 255.
    pub gid_index: Option<u8>,
    /// Up to 15.
    pub service_level: Option<u8>,
    /// Up to 255.
    pub traffic_class: Option<u8>,
    /// Up to 1048575.
    pub flow_label: Option<u32>,
    /// `same` or `per_queue_pair`.
    pub flow_labels: Option<FlowLabels>,
    /// Not 0.
    pub pkey: Option<u16>,
    /// 1 to 22: 8 us to 17 s.
    pub timeout: Option<u8>,
    /// Up to 7.
    pub retry_count: Option<u8>,
    /// Up to 7.
    pub rnr_retry: Option<u8>,
    /// 1 to 128.
    pub rd_atomic: Option<u8>,
    /// `host` or `huge_pages`.
    pub memory: Option<Memory>,
}

impl RdmaSpec {
    /// This spec with every field that `above` sets replaced by that of `above`.
    #[must_use]
    pub fn overridden_by(self, above: Self) -> Self {
        Self {
            depth: above.depth.or(self.depth),
            post_list: above.post_list.or(self.post_list),
            cq_mod: above.cq_mod.or(self.cq_mod),
            inline_bytes: above.inline_bytes.or(self.inline_bytes),
            mtu: above.mtu.or(self.mtu),
            gid_index: above.gid_index.or(self.gid_index),
            service_level: above.service_level.or(self.service_level),
            traffic_class: above.traffic_class.or(self.traffic_class),
            flow_label: above.flow_label.or(self.flow_label),
            flow_labels: above.flow_labels.or(self.flow_labels),
            pkey: above.pkey.or(self.pkey),
            timeout: above.timeout.or(self.timeout),
            retry_count: above.retry_count.or(self.retry_count),
            rnr_retry: above.rnr_retry.or(self.rnr_retry),
            rd_atomic: above.rd_atomic.or(self.rd_atomic),
            memory: above.memory.or(self.memory),
        }
    }

    /// Fills in the defaults and checks every bound.
    ///
    /// # Errors
    /// [`PlanError`] with the key, the refused value and what would be right.
    pub(super) fn validate(self) -> Result<RdmaOptions, PlanError> {
        let default = RdmaOptions::default();
        let options = RdmaOptions {
            depth: self.depth.unwrap_or(default.depth),
            post_list: self.post_list.unwrap_or(default.post_list),
            cq_mod: self.cq_mod,
            inline_bytes: self.inline_bytes,
            mtu: self.mtu,
            gid_index: self.gid_index,
            service_level: self.service_level.unwrap_or(default.service_level),
            traffic_class: self.traffic_class.unwrap_or(default.traffic_class),
            flow_label: self.flow_label.unwrap_or(default.flow_label),
            flow_labels: self.flow_labels.unwrap_or(default.flow_labels),
            pkey: self.pkey,
            timeout: self.timeout.unwrap_or(default.timeout),
            retry_count: self.retry_count.unwrap_or(default.retry_count),
            rnr_retry: self.rnr_retry.unwrap_or(default.rnr_retry),
            rd_atomic: self.rd_atomic,
            memory: self.memory.unwrap_or(default.memory),
        };
        within("rdma.depth", options.depth, &bounds::DEPTH, u16::to_string)?;
        within("rdma.post_list", options.post_list, &bounds::POST_LIST, u16::to_string)?;
        within("rdma.cq_mod", options.cq_mod.unwrap_or(1), &bounds::CQ_MOD, u16::to_string)?;
        within("rdma.inline_bytes", options.inline_bytes.unwrap_or(0), &bounds::INLINE, u16::to_string)?;
        within("rdma.service_level", options.service_level, &bounds::SERVICE_LEVEL, u8::to_string)?;
        within("rdma.flow_label", options.flow_label, &bounds::FLOW_LABEL, u32::to_string)?;
        within("rdma.pkey", options.pkey.unwrap_or(1), &bounds::PKEY, u16::to_string)?;
        within("rdma.timeout", options.timeout, &bounds::ACK_TIMEOUT, u8::to_string)?;
        within("rdma.retry_count", options.retry_count, &bounds::RETRIES, u8::to_string)?;
        within("rdma.rnr_retry", options.rnr_retry, &bounds::RETRIES, u8::to_string)?;
        within("rdma.rd_atomic", options.rd_atomic.unwrap_or(1), &bounds::RD_ATOMIC, u8::to_string)?;
        if options.post_list > options.depth {
            return Err(PlanError::PostListAboveDepth { post_list: options.post_list, depth: options.depth });
        }
        Ok(options)
    }
}

impl From<RdmaOptions> for RdmaSpec {
    fn from(options: RdmaOptions) -> Self {
        Self {
            depth: Some(options.depth),
            post_list: Some(options.post_list),
            cq_mod: options.cq_mod,
            inline_bytes: options.inline_bytes,
            mtu: options.mtu,
            gid_index: options.gid_index,
            service_level: Some(options.service_level),
            traffic_class: Some(options.traffic_class),
            flow_label: Some(options.flow_label),
            flow_labels: Some(options.flow_labels),
            pkey: options.pkey,
            timeout: Some(options.timeout),
            retry_count: Some(options.retry_count),
            rnr_retry: Some(options.rnr_retry),
            rd_atomic: options.rd_atomic,
            memory: Some(options.memory),
        }
    }
}
