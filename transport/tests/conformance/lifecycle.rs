//! Steps, limits of time, stop and failures on any backend.

use std::thread;
use std::time::Duration;

use bench_core::cell::End;
use bench_core::message::{CellTask, EndpointInfo, Peer};
use bench_core::plan::{TestCase, WaitMode};
use bench_core::record::{FailureKind, Phase};
use bench_core::time::Mono;
use transport::clock;
use transport::data::{Stop, Timing};

use crate::rig::{NOBODY, Rig, timing};

pub(crate) fn only_a_destination_tells_where_it_listens(rig: &Rig) {
    let ends = rig.prepared(rig.bandwidth_case());
    assert_eq!(ends.source.info(), None);
    let (one, other) =
        (ends.destination.info().unwrap(), rig.prepared(rig.bandwidth_case()).destination.info());
    assert_ne!(Some(one), other, "two attempts share nothing");
}

pub(crate) fn evidence_names_device_and_both_addresses(rig: &Rig) {
    let ends = rig.armed(rig.bandwidth_case());
    let (source, destination) = (ends.source.evidence(), ends.destination.evidence());
    for evidence in [&source, &destination] {
        assert_eq!(evidence.device.as_deref(), Some("rail0"));
        assert!(evidence.local.is_some() && evidence.peer.is_some(), "{evidence:?}");
        assert!(!evidence.facts.is_empty());
    }
    assert!(source.local.unwrap().contains("127.0.0.1"));
    assert!(destination.local.unwrap().contains("127.0.0.2"));
}

pub(crate) fn a_stop_before_the_start_is_noticed_at_once(rig: &Rig) {
    for case in [rig.bandwidth_case(), rig.latency_case()] {
        let far = Timing { at: clock::now().after(Duration::from_secs(60)), ..timing(&case) };
        let mut ends = rig.armed(case);
        let stop = Stop::default();
        stop.set();
        let begun = clock::now();
        let results = ends.run(&far, &stop);
        assert!(clock::now().since(begun) < NOTICED);
        for result in [results.source, results.destination] {
            let failure = result.unwrap_err();
            assert_eq!((failure.kind, failure.phase), (FailureKind::Cancelled, Phase::Armed));
        }
    }
}

// A backend that takes its time must be interrupted; one that computes is done before. Neither may go on.
pub(crate) fn a_stop_in_the_window_ends_both_ends(rig: &Rig) {
    for case in [rig.bandwidth_case(), rig.latency_case()] {
        let case = TestCase { window: Duration::from_secs(30), ..case };
        let mut ends = rig.armed(case);
        let stop = Stop::default();
        let timing = timing(&case);
        thread::scope(|scope| {
            let both = scope.spawn(|| {
                let results = ends.run(&timing, &stop);
                (results, clock::now())
            });
            thread::sleep(Duration::from_millis(200));
            let asked = clock::now();
            stop.set();
            let (results, ended) = both.join().unwrap();
            assert!(ended.since(asked) < NOTICED, "{:?}", ended.since(asked));
            for result in [results.source, results.destination] {
                assert!(result.as_ref().err().is_none_or(|f| f.kind == FailureKind::Cancelled), "{result:?}");
            }
        });
    }
}

pub(crate) fn a_stop_is_noticed_while_the_peer_is_silent(rig: &Rig) {
    for wait in [WaitMode::Blocking, WaitMode::Spinning] {
        for case in [rig.bandwidth_case(), rig.latency_case()] {
            let case = TestCase { wait, window: Duration::from_secs(30), ..case };
            let mut ends = rig.armed(case);
            let (timing, stop) = (timing(&case), Stop::default());
            thread::scope(|scope| {
                let receiving = scope.spawn(|| ends.destination.run(&timing, &stop));
                thread::sleep(Duration::from_millis(100));
                let asked = clock::now();
                stop.set();
                let result = receiving.join().unwrap();
                assert!(clock::now().since(asked) < NOTICED);
                assert!(result.as_ref().err().is_none_or(|f| f.kind == FailureKind::Cancelled), "{result:?}");
            });
        }
    }
}

pub(crate) fn a_destination_that_nobody_calls_gives_up_in_time(rig: &Rig) {
    let task = CellTask {
        connect_timeout: Duration::from_millis(150),
        ..rig.task(rig.bandwidth_case(), End::Destination)
    };
    let mut destination = rig.prepare(&task).unwrap();
    let begun = clock::now();
    let failure = destination.connect(&Peer::default(), &Stop::default()).unwrap_err();
    let took = clock::now().since(begun);
    assert_eq!((failure.kind, failure.phase), (FailureKind::Timeout, Phase::Connect));
    assert!(took >= task.connect_timeout && took < task.connect_timeout + NOTICED, "{took:?}");
}

pub(crate) fn a_destination_that_nobody_calls_can_be_stopped(rig: &Rig) {
    let mut ends = rig.prepared(rig.bandwidth_case());
    let stop = Stop::default();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| ends.destination.connect(&Peer::default(), &stop).unwrap_err());
        thread::sleep(Duration::from_millis(50));
        let asked = clock::now();
        stop.set();
        let failure = waiting.join().unwrap();
        assert!(clock::now().since(asked) < NOTICED);
        assert_eq!(failure.kind, FailureKind::Cancelled);
    });
}

pub(crate) fn a_call_to_a_port_that_is_closed_fails(rig: &Rig) {
    let mut ends = rig.prepared(rig.bandwidth_case());
    let info = ends.destination.info().unwrap();
    drop(ends.destination);
    let failure = ends.source.connect(&Peer::at(info.clone()), &Stop::default()).unwrap_err();
    assert_eq!((failure.kind, failure.phase), (FailureKind::Crash, Phase::Connect));
    assert!(failure.detail.contains("nothing listens there"), "{failure:?}");
    if let EndpointInfo::Tcp { addr, .. } = info {
        assert!(failure.detail.contains("ECONNREFUSED"), "{failure:?}");
        assert!(failure.detail.contains(&addr.to_string()), "{failure:?}");
        assert!(failure.detail.contains("127.0.0.1"), "{failure:?}");
    }
}

pub(crate) fn an_address_that_is_not_ours_is_unsupported(rig: &Rig) {
    let foreign = |end| CellTask { bind: Some(NOBODY), ..rig.task(rig.bandwidth_case(), end) };
    let Err(failure) = rig.prepare(&foreign(End::Destination)) else {
        panic!("listens at an address that this node does not have");
    };
    assert_eq!((failure.kind, failure.phase), (FailureKind::Unsupported, Phase::Prepare));
    assert!(failure.detail.contains("192.0.2.1") && failure.remedy.is_some(), "{failure:?}");
    // A source may find out as late as at connect.
    let info = rig.prepared(rig.bandwidth_case()).destination.info().unwrap();
    let failure = rig
        .prepare(&foreign(End::Source))
        .and_then(|mut source| source.connect(&Peer::at(info.clone()), &Stop::default()))
        .unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unsupported, "{failure:?}");
}

pub(crate) fn a_late_start_is_refused(rig: &Rig) {
    let case = rig.bandwidth_case();
    let mut ends = rig.armed(case);
    let late = Timing { at: clock::now().before(case.warmup + Duration::from_millis(1)), ..timing(&case) };
    let results = ends.run(&late, &Stop::default());
    for result in [results.source, results.destination] {
        let failure = result.unwrap_err();
        assert_eq!((failure.kind, failure.phase), (FailureKind::Late, Phase::Armed));
    }
}

pub(crate) fn an_end_runs_only_when_armed_and_only_once(rig: &Rig) {
    let case = rig.bandwidth_case();
    let mut unarmed = rig.prepared(case);
    assert!(unarmed.source.run(&timing(&case), &Stop::default()).is_err());
    let mut ends = rig.armed(case);
    let first = ends.run(&timing(&case), &Stop::default());
    assert!(first.source.is_ok() && first.destination.is_ok(), "{first:?}");
    let again = ends.run(&timing(&case), &Stop::default());
    assert!(again.source.is_err() && again.destination.is_err(), "{again:?}");
}

pub(crate) fn a_peer_that_left_is_a_failure_of_the_infrastructure(rig: &Rig) {
    for case in [rig.bandwidth_case(), rig.latency_case()] {
        let mut ends = rig.armed(case);
        drop(ends.destination);
        let failure = ends.source.run(&timing(&case), &Stop::default()).unwrap_err();
        assert_eq!(failure.kind, rig.gone, "{failure:?}");

        let mut ends = rig.armed(case);
        drop(ends.source);
        let failure = ends.destination.run(&timing(&case), &Stop::default()).unwrap_err();
        assert_eq!(failure.kind, rig.gone, "{failure:?}");
    }
}

pub(crate) fn a_peer_that_never_runs_costs_no_more_than_the_deadline(rig: &Rig) {
    let case = TestCase { window: Duration::from_millis(50), ..rig.bandwidth_case() };
    for case in [case, TestCase { window: case.window, ..rig.latency_case() }] {
        let mut ends = rig.armed(case);
        let timing = timing(&case);
        let result = ends.source.run(&timing, &Stop::default());
        assert!(clock::now() <= latest(&timing));
        assert!(result.as_ref().err().is_none_or(|f| f.kind == FailureKind::Timeout), "{result:?}");
    }
}

fn latest(timing: &Timing) -> Mono {
    timing.deadline().after(Duration::from_secs(1))
}

/// How soon a stop must have had its effect: 200 ms promised, the rest for a busy machine.
const NOTICED: Duration = Duration::from_millis(500);
