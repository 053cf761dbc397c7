//! What an end tells of its path.

use bench_core::cell::End;
use bench_core::message::CellTask;
use bench_core::record::Evidence;
use bench_core::topology::LinkLayer;
use bench_core::verbs::{
    HandRun, Memory, RdmaOptions, Routing, VerbsInfo, perftest_command, udp_source_port,
};

use super::link::{Armed, Link, flow_label};

/// What is known before the peer is.
pub(super) fn of_link(task: &CellTask, options: &RdmaOptions, link: &Link) -> Evidence {
    Evidence { device: Some(task.device.clone()), facts: own(options, link), ..Evidence::default() }
}

/// What is known once the queue pairs are connected.
pub(super) fn of_armed(task: &CellTask, options: &RdmaOptions, armed: &Armed) -> Evidence {
    let mut facts = own(options, &armed.link);
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    fact("path_mtu_bytes", armed.path.mtu.bytes().to_string());
    fact("pkey", format!("0x{:04x}", armed.path.pkey(task.end).value));
    fact("service_level", options.service_level.to_string());
    match armed.path.routing {
        Routing::Lid => {}
        Routing::Global { .. } => {
            fact("traffic_class", options.traffic_class.to_string());
            fact("flow_label", labels(options, armed.lanes()));
        }
    }
    if let (Routing::Global { .. }, LinkLayer::Ethernet, 1..) =
        (armed.path.routing, armed.link.info.link_layer, options.flow_label)
    {
        let port = udp_source_port(flow_label(options, 0));
        fact("udp_source_port", format!("{port} by the flow label, where the driver follows it"));
    }
    fact("reads_under_way", armed.reads.to_string());
    fact(
        "timeout",
        format!("{} x {} tries", ack_timeout(options.timeout), u16::from(options.retry_count) + 1),
    );
    fact("reproduce", reproduce(task, options, armed));
    Evidence {
        device: Some(task.device.clone()),
        local: Some(place(&armed.link.info, armed, task.end)),
        peer: Some(place(&armed.peer, armed, task.end.other())),
        facts,
    }
}

fn own(options: &RdmaOptions, link: &Link) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    vec![
        fact("hca", link.info.device.clone()),
        fact("firmware", link.firmware.clone()),
        fact("link_layer", link.info.link_layer.to_string()),
        fact("active_mtu_bytes", link.info.mtu.bytes().to_string()),
        fact("queue_pairs", link.queue_pairs.len().to_string()),
        fact("inline_bytes", link.inline_bytes.to_string()),
        fact("memory", memory(options.memory).to_owned()),
        fact("post", "ibv_post_send".to_owned()),
        fact("gpudirect_dma_buf", link.gpudirect.dma_buf.clone()),
        fact("gpudirect_peermem", link.gpudirect.peermem.to_owned()),
    ]
}

/// The word for a kind of memory.
pub(super) fn memory(memory: Memory) -> &'static str {
    match memory {
        Memory::Host => "host",
        Memory::HugePages => "huge pages",
    }
}

fn labels(options: &RdmaOptions, lanes: usize) -> String {
    let (first, last) = (flow_label(options, 0), flow_label(options, lanes.saturating_sub(1)));
    if first == last { first.to_string() } else { format!("{first} to {last}") }
}

/// Where an end is: its GID, or its LID.
fn place(info: &VerbsInfo, armed: &Armed, end: End) -> String {
    match armed.path.gid(end) {
        Some(row) => format!("{} {row}", info.device),
        None => format!("{} LID {}", info.device, info.lid),
    }
}

/// The local ACK timeout in words.
fn ack_timeout(code: u8) -> String {
    let micros = 4.096 * f64::from(1_u32 << code.min(31));
    if micros < 1_000.0 { format!("{micros:.1} us") } else { format!("{:.1} ms", micros / 1e3) }
}

fn reproduce(task: &CellTask, options: &RdmaOptions, armed: &Armed) -> String {
    let device = task.hca.as_ref().map_or_else(String::new, |hca| hca.device.clone());
    let hand = HandRun {
        device: &device,
        port: armed.link.port,
        gid_index: armed.path.gid(task.end).map(|row| row.index),
        mtu: armed.path.mtu,
        inline_bytes: armed.link.inline_bytes,
    };
    perftest_command(&task.case, options, task.end, &hand)
}
