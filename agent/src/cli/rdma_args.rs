//! Flags of RDMA tests, under perftest's names.

use bench_core::plan::RdmaSpec;
use bench_core::verbs::{FlowLabels, Memory, PathMtu};
use clap::{Args, ValueEnum};

/// Parameters of RDMA tests; the letters are perftest's where they mean the same.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "RDMA tests")]
pub struct RdmaArgs {
    /// Messages under way on each queue pair of a bandwidth test (perftest's -t). Default: 128.
    #[arg(long, value_name = "N")]
    pub tx_depth: Option<u16>,
    /// Work requests handed over in one call. Default: 1.
    #[arg(short = 'l', long, value_name = "N")]
    pub post_list: Option<u16>,
    /// Messages for one completion of a bandwidth test. Default: 100 up to 8 KiB, else 1.
    #[arg(short = 'Q', long, value_name = "N")]
    pub cq_mod: Option<u16>,
    /// Messages up to this many bytes travel inside the work request. Default: 220 for latency, none for bandwidth.
    #[arg(short = 'I', long, value_name = "BYTES")]
    pub inline_size: Option<u16>,
    /// Path MTU: 256, 512, 1024, 2048 or 4096. Default: the smaller active MTU of both ports.
    #[arg(short = 'm', long, value_name = "BYTES", value_parser = mtu)]
    pub mtu: Option<PathMtu>,
    /// Which GID of the port to use. Default: by rule, see docs/verbs.md.
    #[arg(short = 'x', long, value_name = "INDEX")]
    pub gid_index: Option<u8>,
    /// Service level, 0 to 15. Default: 0.
    #[arg(short = 'S', long, value_name = "SL")]
    pub sl: Option<u8>,
    /// Traffic class; on RoCE the DSCP in its upper six bits. Default: 0.
    #[arg(long, value_name = "TC")]
    pub tclass: Option<u8>,
    /// Flow label, 20 bits. Default: 0.
    #[arg(long, value_name = "LABEL")]
    pub flow_label: Option<u32>,
    /// Whether all queue pairs of a cell use that label, or each the next one. Default: same.
    #[arg(long, value_enum, value_name = "WHICH")]
    pub flow_labels: Option<FlowLabelsArg>,
    /// P_Key by value, such as 0x8001. Default: by rule, see docs/verbs.md.
    #[arg(long, value_name = "P_KEY", value_parser = number)]
    pub pkey: Option<u16>,
    /// Local ACK timeout, 4.096 us x 2^N. Default: 14.
    #[arg(short = 'u', long, value_name = "N")]
    pub qp_timeout: Option<u8>,
    /// Retries of a packet that is not acknowledged, up to 7. Default: 7.
    #[arg(long, value_name = "N")]
    pub retry_count: Option<u8>,
    /// Retries where the peer has no receive posted, up to 7, which means without end. Default: 6.
    #[arg(long, value_name = "N")]
    pub rnr_retry: Option<u8>,
    /// Reads under way on each queue pair. Default: what both devices allow.
    #[arg(short = 'o', long, value_name = "N")]
    pub outs: Option<u8>,
    /// Keep the messages in huge pages.
    #[arg(long)]
    pub use_hugepages: bool,
}

/// Which flow labels, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum FlowLabelsArg {
    /// One for all.
    Same,
    /// Each queue pair the next one.
    PerQueuePair,
}

impl RdmaArgs {
    /// What they say of a plan; `None` if they say nothing.
    pub(crate) fn spec(&self) -> Option<RdmaSpec> {
        let spec = RdmaSpec {
            depth: self.tx_depth,
            post_list: self.post_list,
            cq_mod: self.cq_mod,
            inline_bytes: self.inline_size,
            mtu: self.mtu,
            gid_index: self.gid_index,
            service_level: self.sl,
            traffic_class: self.tclass,
            flow_label: self.flow_label,
            flow_labels: self.flow_labels.map(|which| match which {
                FlowLabelsArg::Same => FlowLabels::Same,
                FlowLabelsArg::PerQueuePair => FlowLabels::PerQueuePair,
            }),
            pkey: self.pkey,
            timeout: self.qp_timeout,
            retry_count: self.retry_count,
            rnr_retry: self.rnr_retry,
            rd_atomic: self.outs,
            memory: self.use_hugepages.then_some(Memory::HugePages),
        };
        (spec != RdmaSpec::default()).then_some(spec)
    }
}

fn mtu(text: &str) -> Result<PathMtu, String> {
    let bytes: u16 = text.parse().map_err(|_| format!("{text:?} is no number of bytes"))?;
    PathMtu::try_from(bytes).map_err(|error| error.to_string())
}

/// A number, hexadecimal after `0x`.
fn number(text: &str) -> Result<u16, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| format!("{text:?} is no P_Key such as 0x8001"))
}
