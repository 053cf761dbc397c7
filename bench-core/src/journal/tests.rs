//! A journal is never read wrongly, and the union of journals does not depend on who kept what.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::subsequence;

use super::*;
use crate::cell::End;
use crate::ids::{Attempt, CellId, Epoch, RoundId, RunId};
use crate::measure::{
    BandwidthSample, DataCheck, Histogram, LatencySample, Mark, Measurement, RttShare, Window,
};
use crate::record::{Evidence, Failure, FailureKind, Observation, ObservationKey, Outcome, Phase};
use crate::time::{ClockOffset, Mono};

fn observation(cell: u32, term: u64, attempt: u16, end: End, outcome: Outcome) -> Observation {
    Observation {
        key: ObservationKey {
            run: RunId([7; 16]),
            cell: CellId(cell),
            epoch: Epoch { term, elector: 0 },
            attempt: Attempt(attempt),
            end,
        },
        round: RoundId(cell),
        outcome,
        evidence: Evidence {
            device: Some("eth0".into()),
            local: None,
            peer: None,
            facts: vec![("mss".into(), "1448".into())],
        },
        clock: ClockOffset::default(),
    }
}

fn bandwidth(bytes: u64) -> Outcome {
    Outcome::Measured(Measurement::Bandwidth(BandwidthSample {
        window: Window::new(Mono::from_nanos(bytes), Duration::from_secs(1)),
        bytes,
        marks: vec![Mark { at_ns: 5, bytes: 1, completions: 1 }],
        check: DataCheck::Unchecked,
        retransmits: Some(3),
        cpu_ns: None,
    }))
}

fn latency(nanos: u64) -> Outcome {
    let mut histogram = Histogram::new();
    histogram.record(nanos);
    Outcome::Measured(Measurement::Latency(LatencySample {
        window: Window::new(Mono::from_nanos(0), Duration::from_secs(1)),
        histogram,
        share: RttShare::Half,
        check: DataCheck::Unchecked,
    }))
}

fn failed() -> Outcome {
    Outcome::Failed(Failure {
        kind: FailureKind::Timeout,
        phase: Phase::Connect,
        detail: "no answer".into(),
        remedy: None,
    })
}

/// Few cells, epochs and attempts, so that the same key comes up with the same and with other contents.
fn any_observation() -> impl Strategy<Value = Observation> {
    let outcome = prop_oneof![
        3 => (1_u64..3).prop_map(bandwidth),
        1 => Just(failed()),
        1 => (1_u64..3).prop_map(latency),
    ];
    let end = prop_oneof![Just(End::Source), Just(End::Destination)];
    (0_u32..3, 1_u64..3, 1_u16..3, end, outcome)
        .prop_map(|(cell, term, attempt, end, outcome)| observation(cell, term, attempt, end, outcome))
}

/// A list, and copies of parts of it in other orders whose union is the whole.
fn journals() -> impl Strategy<Value = (Vec<Observation>, Vec<Vec<Observation>>)> {
    prop::collection::vec(any_observation(), 0..14).prop_flat_map(|all| {
        let part = subsequence(all.clone(), 0..=all.len()).prop_shuffle();
        let parts = prop::collection::vec(part, 0..4);
        (Just(all.clone()), Just(all).prop_shuffle(), parts).prop_map(|(all, whole, mut parts)| {
            let cut = whole.len() / 2;
            parts.insert(0, whole[cut..].to_vec());
            parts.push(whole[..cut].to_vec());
            (all, parts)
        })
    })
}

fn file(observations: &[Observation]) -> Vec<u8> {
    observations.iter().flat_map(encode).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn journals_in_any_order_with_repetitions_merge_to_the_union((all, parts) in journals()) {
        let read_back = parts.iter().flat_map(|part| {
            let journal = read(&file(part));
            assert_eq!((journal.damaged.len(), journal.torn_tail), (0, None));
            journal.observations
        });
        prop_assert_eq!(merge(read_back), merge(all));
    }

    #[test]
    fn superseded_attempts_change_nothing_that_counts((all, _) in journals()) {
        let merged = merge(&all);
        let counted: Vec<&Observation> = merged
            .cells()
            .filter_map(|(_, _, cell)| match cell.standing() {
                Standing::Complete { source, destination, .. } => Some([source, destination]),
                Standing::Incomplete { .. } | Standing::Conflict { .. } => None,
            })
            .flatten()
            .collect();
        let only_counted = merge(counted.iter().copied());
        for (run, id, cell) in only_counted.cells() {
            let with_the_rest = merged.cell(run, id).expect("it is a subset").standing();
            prop_assert_eq!(cell.standing(), with_the_rest);
            let (Standing::Complete { key, .. }, Standing::Complete { .. }) = (cell.standing(), with_the_rest) else {
                panic!("both ends were taken over");
            };
            let whole = merged.cell(run, id).expect("it is a subset");
            for (other, ends) in whole.attempts().filter(|(other, _)| *other > key) {
                let both = [&ends.source, &ends.destination].iter().all(|end| {
                    end.first().is_some_and(|o| matches!(o.outcome, Outcome::Measured(_)))
                });
                prop_assert!(!both, "a higher complete attempt {:?} was passed over", other);
            }
        }
    }
}

fn small_journal() -> Vec<Observation> {
    vec![
        observation(0, 1, 1, End::Source, bandwidth(900)),
        observation(0, 1, 1, End::Destination, failed()),
        observation(1, 1, 1, End::Source, latency(12_000)),
    ]
}

#[test]
fn a_journal_cut_at_any_byte_gives_its_whole_records_and_reports_the_torn_one() {
    let all = small_journal();
    let bytes = file(&all);
    let mut ends = vec![0];
    for one in &all {
        ends.push(ends.last().expect("starts at 0") + encode(one).len());
    }
    for cut in 0..=bytes.len() {
        let journal = read(&bytes[..cut]);
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        assert_eq!(journal.observations, all[..whole], "cut at {cut}");
        assert_eq!(journal.damaged, [], "cut at {cut}");
        let torn = (ends[whole] != cut).then_some(ends[whole]);
        assert_eq!(journal.torn_tail, torn, "cut at {cut}");
    }
}

#[test]
fn a_flipped_bit_costs_its_own_record_and_is_reported() {
    let all = small_journal();
    let bytes = file(&all);
    let mut ends = Vec::new();
    for one in &all {
        ends.push(ends.last().copied().unwrap_or(0) + encode(one).len());
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut broken = bytes.clone();
            broken[at] ^= 1 << bit;
            let journal = read(&broken);
            let hit = ends.iter().position(|end| at < *end).expect("inside");
            let mut expected = all.clone();
            expected.remove(hit);
            assert_eq!(journal.observations, expected, "bit {bit} of byte {at}");
            assert!(
                journal.damaged.len() == 1 || journal.torn_tail.is_some(),
                "bit {bit} of byte {at} was not reported"
            );
        }
    }
}

#[test]
fn a_tail_of_zeros_after_a_power_loss_is_torn() {
    let mut bytes = file(&small_journal());
    let end = bytes.len();
    bytes.extend([0; 4_096]);
    let journal = read(&bytes);
    assert_eq!((journal.observations.len(), journal.torn_tail), (3, Some(end)));
}

#[test]
fn a_record_of_another_build_is_reported_and_not_used() {
    let body = [0xff; 40];
    let length = 40_u32.to_le_bytes();
    let crc = crc32c::crc32c_append(crc32c::crc32c(&length), &body).to_le_bytes();
    let mut bytes = [&length[..], &crc[..], &body[..]].concat();
    bytes.extend(file(&small_journal()));
    let journal = read(&bytes);
    assert_eq!(journal.observations, small_journal());
    let reasons: Vec<DamageReason> = journal.damaged.iter().map(|d| d.reason).collect();
    assert_eq!(reasons, [DamageReason::Body]);
}

#[test]
fn one_key_with_two_contents_is_a_conflict_with_both_kept() {
    let one = observation(4, 1, 1, End::Destination, bandwidth(1));
    let other = observation(4, 1, 1, End::Destination, bandwidth(2));
    let merged = merge([other.clone(), one.clone(), other.clone()]);
    let cell = merged.cell(RunId([7; 16]), CellId(4)).expect("observed");
    assert!(matches!(cell.standing(), Standing::Conflict { end: End::Destination, .. }));
    let kept: Vec<Observation> = cell.conflicts().flat_map(|(_, _, seen)| seen.to_vec()).collect();
    assert_eq!(kept.len(), 2);
    assert_eq!(merged, merge([one, other]));
}

#[test]
fn a_later_epoch_counts_before_a_higher_attempt_and_an_incomplete_one_not_at_all() {
    let complete = |term, attempt, bytes| {
        [End::Source, End::Destination].map(|end| observation(0, term, attempt, end, bandwidth(bytes)))
    };
    let mut all = [complete(1, 2, 10), complete(2, 1, 20)].concat();
    all.push(observation(0, 3, 1, End::Source, bandwidth(30)));
    let merged = merge(all);
    let cell = merged.cell(RunId([7; 16]), CellId(0)).expect("observed");
    let Standing::Complete { key, .. } = cell.standing() else {
        panic!("two attempts are complete");
    };
    assert_eq!((key.epoch.term, key.attempt), (2, Attempt(1)));
    assert_eq!(cell.superseded(key).count(), 2);
}
