//! Every status that a completion can have, each with its explanation.

use bench_core::plan::{TestCase, TestKind};
use bench_core::record::{Failure, Phase};
use bench_core::verbs::{RdmaOptions, WcStatus};

use crate::fake::{ROCE, over};
use crate::rig::{Rig, rdma_case};

fn failed(kind: TestKind, streams: u16) -> Failure {
    let options = RdmaOptions { depth: 4, ..RdmaOptions::default() };
    let case = TestCase { streams, rdma: Some(options), ..rdma_case(kind) };
    match Rig::send().measure(case).source {
        Err(failure) => failure,
        other => panic!("{other:?}"),
    }
}

macro_rules! injected {
    ($($name:ident $number:literal;)*) => {
        $(#[test]
        fn $name() {
            let scenario =
                format!("{ROCE}\ninject completion status={} vendor_err=129 message=20 device=mlx5_0\n", $number);
            over(concat!("verbs_completions::", stringify!($name)), &scenario, || explained($number));
        })*

        /// The statuses that are injected.
        const INJECTED: &[u32] = &[$($number),*];
    };
}

injected! {
    local_length 1;
    local_queue_pair_operation 2;
    local_eec_operation 3;
    local_protection 4;
    flushed 5;
    memory_window_bind 6;
    bad_response 7;
    local_access 8;
    remote_invalid_request 9;
    remote_access 10;
    remote_operation 11;
    retry_exceeded 12;
    receiver_not_ready 13;
    local_rd_domain 14;
    remote_invalid_rd_request 15;
    remote_aborted 16;
    invalid_eec_number 17;
    invalid_eec_state 18;
    fatal 19;
    response_timeout 20;
    general 21;
    tag_matching 22;
    tag_matching_incomplete 23;
}

fn explained(number: u32) {
    let status = WcStatus::of_code(number).unwrap();
    let failure = failed(TestKind::WriteBw, 1);
    assert_eq!(failure.kind, status.kind(), "{failure:?}");
    assert!(matches!(failure.phase, Phase::Warmup | Phase::Measure), "{failure:?}");
    for word in [status.name(), status.cause(), "129 (0x81)", "of mlx5_0 to", "peer's mlx5_1"] {
        assert!(failure.detail.contains(word), "{word:?}: {failure:?}");
    }
    assert_eq!(failure.remedy.as_deref(), Some(status.remedy()));
}

#[test]
fn every_status_but_success_is_injected() {
    let known: Vec<u32> = WcStatus::all().map(WcStatus::code).filter(|code| *code != 0).collect();
    assert_eq!(INJECTED, known);
}

#[test]
fn a_failure_on_one_of_many_queue_pairs_is_told_with_that_pair() {
    let scenario = format!("{ROCE}\ninject completion status=12 message=50 device=mlx5_0\n");
    over("verbs_completions::a_failure_on_one_of_many_queue_pairs_is_told_with_that_pair", &scenario, || {
        let failure = failed(TestKind::SendBw, 8);
        assert!(failure.detail.contains("IBV_WC_RETRY_EXC_ERR 12"), "{failure:?}");
    });
}
