//! RDMA tests of which one end is not told: write and read.

use bench_core::measure::{BandwidthSample, DataCheck, Measurement, RttShare};
use bench_core::message::EndpointInfo;
use bench_core::plan::{TestCase, TestKind, Verify};
use bench_core::units::Bytes;
use bench_core::verbs::{FlowLabels, RdmaOptions};

use crate::fake::{INFINIBAND, ROCE, over, record};
use crate::rig::{Results, Rig, rdma_case, sample_of};

fn counted(results: Results, kind: TestKind) -> (BandwidthSample, DataCheck) {
    let (counting, passive) = match kind {
        TestKind::ReadBw => (results.destination, results.source),
        _ => (results.source, results.destination),
    };
    match passive {
        Ok(Measurement::Passive { check }) => (sample_of(counting), check),
        other => panic!("not passed by: {other:?}"),
    }
}

#[test]
fn writes_and_reads_are_counted_by_the_end_that_starts_them() {
    over("verbs_one_sided::writes_and_reads_are_counted_by_the_end_that_starts_them", ROCE, || {
        let rig = Rig::send();
        for kind in [TestKind::WriteBw, TestKind::ReadBw] {
            let case = TestCase { streams: 2, ..rdma_case(kind) };
            let (sample, check) = counted(rig.measure(case), kind);
            assert!(sample.bytes > 0, "{kind}");
            assert_eq!(sample.bytes % (128 << 10), 0, "{kind}: whole messages");
            assert_eq!((sample.check, check), (DataCheck::Unchecked, DataCheck::Unchecked), "{kind}");
        }
    });
}

#[test]
fn what_was_written_and_read_is_compared_where_it_lies() {
    over("verbs_one_sided::what_was_written_and_read_is_compared_where_it_lies", ROCE, || {
        let rig = Rig::send();
        let verified = |kind| {
            let case =
                TestCase { verify: Verify::Sampled, size: Bytes(100_001), streams: 3, ..rdma_case(kind) };
            counted(rig.measure(case), kind)
        };
        let (_, written) = verified(TestKind::WriteBw);
        assert!(matches!(written, DataCheck::Equal { bytes } if bytes > 0), "{written:?}");
        let (read, _) = verified(TestKind::ReadBw);
        assert!(matches!(read.check, DataCheck::Equal { bytes } if bytes > 0), "{:?}", read.check);
    });
}

#[test]
fn a_flipped_byte_of_a_source_s_messages_is_found() {
    // Not on the other device: what a destination says of its receives must arrive as it is.
    let scenario = format!("{ROCE}\ninject flip device=mlx5_0 message=1 byte=7 times=1000000000\n");
    over("verbs_one_sided::a_flipped_byte_of_a_source_s_messages_is_found", &scenario, || {
        for kind in [TestKind::WriteBw, TestKind::WriteImmBw, TestKind::SendBw, TestKind::ReadLat] {
            assert!(finds_the_seventh(kind), "{kind}");
        }
    });
}

#[test]
fn a_flipped_byte_of_a_destination_s_reads_and_answers_is_found() {
    let scenario = format!("{ROCE}\ninject flip device=mlx5_1 message=1 byte=7 times=1000000000\n");
    over("verbs_one_sided::a_flipped_byte_of_a_destination_s_reads_and_answers_is_found", &scenario, || {
        for kind in [TestKind::ReadBw, TestKind::WriteLat, TestKind::WriteImmLat, TestKind::SendLat] {
            assert!(finds_the_seventh(kind), "{kind}");
        }
    });
}

/// Whether an end found the seventh byte different. A write's last byte is its number: the seventh is data.
fn finds_the_seventh(kind: TestKind) -> bool {
    let case = TestCase { verify: Verify::Sampled, size: Bytes(64), ..rdma_case(kind) };
    let results = Rig::send().measure(case);
    [results.source, results.destination].into_iter().any(|end| match end {
        Ok(Measurement::Bandwidth(sample)) => is_seventh(sample.check),
        Ok(Measurement::Latency(sample)) => is_seventh(sample.check),
        Ok(Measurement::Passive { check }) => is_seventh(check),
        Ok(Measurement::Responder { .. }) => false,
        Err(failure) => panic!("{kind}: {failure:?}"),
    })
}

fn is_seventh(check: DataCheck) -> bool {
    matches!(check, DataCheck::Different { offset: 7, expected, got } if expected == !got)
}

#[test]
fn every_latency_test_times_exchanges_and_says_which_part_of_the_round_trip() {
    over(
        "verbs_one_sided::every_latency_test_times_exchanges_and_says_which_part_of_the_round_trip",
        INFINIBAND,
        || {
            let rig = Rig::send();
            for (kind, share) in [
                (TestKind::WriteLat, RttShare::Half),
                (TestKind::WriteImmLat, RttShare::Half),
                (TestKind::SendLat, RttShare::Half),
                (TestKind::ReadLat, RttShare::Full),
            ] {
                for size in [1, 8, 4096] {
                    let case = TestCase { size: Bytes(size), ..rdma_case(kind) };
                    match rig.measure(case).source {
                        Ok(Measurement::Latency(sample)) => {
                            assert_eq!(sample.share, share, "{kind}");
                            assert!(sample.histogram.len() > 100, "{kind} {size}: {:?}", sample.histogram);
                        }
                        other => panic!("{kind} {size}: {other:?}"),
                    }
                }
            }
        },
    );
}

#[test]
fn lists_moderation_and_depth_move_the_same_messages() {
    over("verbs_one_sided::lists_moderation_and_depth_move_the_same_messages", ROCE, || {
        let rig = Rig::send();
        for (depth, post_list, cq_mod) in
            [(1, 1, None), (16, 16, Some(1)), (128, 64, Some(100)), (128, 1, Some(128)), (100, 33, Some(99))]
        {
            for kind in [TestKind::WriteBw, TestKind::SendBw, TestKind::WriteImmBw, TestKind::ReadBw] {
                let options = RdmaOptions { depth, post_list, cq_mod, ..RdmaOptions::default() };
                let case = TestCase { size: Bytes(64), rdma: Some(options), ..rdma_case(kind) };
                let results = rig.measure(case);
                let told =
                    format!("{kind} depth {depth} list {post_list} moderation {cq_mod:?}: {results:?}");
                assert!(results.source.is_ok() && results.destination.is_ok(), "{told}");
                let moved = [results.source, results.destination]
                    .into_iter()
                    .any(|end| matches!(end, Ok(Measurement::Bandwidth(sample)) if sample.bytes > 0));
                assert!(moved, "{told}");
            }
        }
    });
}

#[test]
fn both_ends_tell_how_they_are_reached_and_no_two_attempts_share_anything() {
    over(
        "verbs_one_sided::both_ends_tell_how_they_are_reached_and_no_two_attempts_share_anything",
        ROCE,
        || {
            let rig = Rig::send();
            let ends = rig.prepared(rdma_case(TestKind::WriteBw));
            let again = rig.prepared(rdma_case(TestKind::WriteBw));
            let infos = [&ends.source, &ends.destination, &again.source, &again.destination].map(|end| {
                match end.info() {
                    Some(EndpointInfo::Verbs(info)) => info,
                    other => panic!("{other:?}"),
                }
            });
            for (i, one) in infos.iter().enumerate() {
                for other in &infos[i + 1..] {
                    assert_ne!(one.seed, other.seed);
                    assert_ne!(one.queue_pairs, other.queue_pairs);
                    assert_ne!(one.memory, other.memory);
                }
            }
        },
    );
}

#[test]
fn each_queue_pair_can_have_a_flow_label_of_its_own() {
    over("verbs_one_sided::each_queue_pair_can_have_a_flow_label_of_its_own", ROCE, || {
        let rig = Rig::send();
        let options =
            RdmaOptions { flow_label: 40, flow_labels: FlowLabels::PerQueuePair, ..RdmaOptions::default() };
        let case = TestCase { streams: 3, rdma: Some(options), ..rdma_case(TestKind::WriteBw) };
        let ends = rig.armed(case);
        let facts = ends.source.evidence().facts;
        assert!(facts.contains(&("flow_label".to_owned(), "40 to 42".to_owned())), "{facts:?}");
        let record = record();
        for label in [40, 41, 42] {
            assert!(record.contains(&format!("\"flow_label\":{label}")), "{label}:\n{record}");
        }
    });
}

#[test]
fn a_thousand_cells_leave_nothing_behind() {
    over("verbs_one_sided::a_thousand_cells_leave_nothing_behind", INFINIBAND, || {
        let rig = Rig::send();
        for cell in 0..1_000_usize {
            let kind =
                [TestKind::WriteBw, TestKind::SendBw, TestKind::ReadLat, TestKind::WriteImmLat][cell % 4];
            // Some are dropped before they are connected, some before they run.
            match cell % 3 {
                0 => drop(rig.prepared(rdma_case(kind))),
                _ => drop(rig.armed(rdma_case(kind))),
            }
        }
        let record = record();
        let last = record.lines().rfind(|line| line.contains("\"live\"")).unwrap();
        for object in ["contexts", "pds", "mrs", "cqs", "qps"] {
            assert!(last.contains(&format!("\"{object}\":0")), "{last}");
        }
    });
}
