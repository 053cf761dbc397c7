//! The perftest command that does by hand what a cell did: for a vendor's ticket.

use std::fmt::Write;

use super::{Operation, PathMtu, RdmaOptions};
use crate::cell::End;
use crate::plan::{Means, Spread, TestCase};

/// What an end used that its plan left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandRun<'a> {
    /// The RDMA device.
    pub device: &'a str,
    /// Its port.
    pub port: u8,
    /// The row of the GID table, where packets carry a GID.
    pub gid_index: Option<u8>,
    /// The path MTU.
    pub mtu: PathMtu,
    /// Messages up to this size travelled inside the request.
    pub inline_bytes: u32,
}

/// The command for this end. The end that waits is started first; the other one's names the waiting node as `PEER`,
/// by an address that TCP reaches.
pub fn perftest_command(case: &TestCase, options: &RdmaOptions, end: End, hand: &HandRun<'_>) -> String {
    let Means::Rdma(operation) = case.kind.means() else {
        return String::new();
    };
    let spread = case.kind.spread();
    let mut command = format!("{} -d {} -i {}", program(operation, spread), hand.device, hand.port);
    let mut add = |text: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = write!(command, " {text}");
    };
    if let Some(index) = hand.gid_index {
        add(format_args!("-x {index}"));
    }
    add(format_args!("-m {} -s {} -D {}", hand.mtu.bytes(), case.size.get(), case.window.as_secs().max(1)));
    match spread {
        Spread::Bandwidth => {
            add(format_args!("-q {} -t {} -l {}", case.streams, options.depth, options.post_list));
            add(format_args!("-Q {} --report_gbits", options.completions_every(case.size)));
        }
        Spread::Latency => {}
    }
    add(format_args!("-I {} -S {} -u {}", hand.inline_bytes, options.service_level, options.timeout));
    if options.traffic_class != 0 {
        add(format_args!("--tclass {}", options.traffic_class));
    }
    if options.flow_label != 0 {
        add(format_args!("--flow_label {}", options.flow_label));
    }
    if operation == Operation::WriteImm {
        add(format_args!("--write_with_imm"));
    }
    add(format_args!("-F"));
    if end == client(operation, spread) {
        add(format_args!("PEER"));
    }
    command
}

/// perftest's client moves the data, or asks for it.
fn client(operation: Operation, spread: Spread) -> End {
    match (operation, spread) {
        (Operation::Read, Spread::Bandwidth) => End::Destination,
        (Operation::Write | Operation::WriteImm | Operation::Send, _)
        | (Operation::Read, Spread::Latency) => End::Source,
    }
}

fn program(operation: Operation, spread: Spread) -> &'static str {
    match (operation, spread) {
        (Operation::Write | Operation::WriteImm, Spread::Bandwidth) => "ib_write_bw",
        (Operation::Write | Operation::WriteImm, Spread::Latency) => "ib_write_lat",
        (Operation::Read, Spread::Bandwidth) => "ib_read_bw",
        (Operation::Read, Spread::Latency) => "ib_read_lat",
        (Operation::Send, Spread::Bandwidth) => "ib_send_bw",
        (Operation::Send, Spread::Latency) => "ib_send_lat",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PlanSpec;

    fn command(test: &str, end: End, gid_index: Option<u8>) -> String {
        let spec =
            PlanSpec::from_toml(&format!("tests = [\"{test}\"]\nstreams = 2\n[rdma]\ntraffic_class = 106"));
        let plan = spec.and_then(PlanSpec::validate).expect("a plan");
        let case = plan.cases[0];
        let hand = HandRun { device: "mlx5_4", port: 1, gid_index, mtu: PathMtu::B4096, inline_bytes: 0 };
        perftest_command(&case, &case.rdma.expect("an RDMA case"), end, &hand)
    }

    #[test]
    fn the_end_that_asks_names_its_peer() {
        assert_eq!(
            command("write_bw", End::Source, Some(3)),
            "ib_write_bw -d mlx5_4 -i 1 -x 3 -m 4096 -s 65536 -D 2 -q 2 -t 128 -l 1 -Q 1 --report_gbits -I 0 -S 0 -u 14 \
             --tclass 106 -F PEER"
        );
        assert!(!command("write_bw", End::Destination, None).contains("PEER"));
        assert!(command("read_bw", End::Destination, None).ends_with("PEER"));
        assert!(!command("read_bw", End::Source, None).contains("PEER"));
        let imm = command("write_imm_lat", End::Source, None);
        assert!(imm.starts_with("ib_write_lat") && imm.contains("--write_with_imm"), "{imm}");
    }
}
