//! A TCP listener of a cell on an open port: strangers neither get in nor hold up.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use bench_core::message::{EndpointInfo, Peer};
use bench_core::plan::TestCase;
use transport::clock;
use transport::data::Stop;

use crate::rig::{Rig, bandwidth_case, timing};

fn address(info: &EndpointInfo) -> SocketAddr {
    match info {
        EndpointInfo::Tcp { addr, .. } => *addr,
        EndpointInfo::Verbs(_) | EndpointInfo::Sim { .. } => panic!("not a TCP endpoint"),
    }
}

#[test]
fn silent_and_wrong_strangers_do_not_hold_up_the_streams() {
    let rig = Rig::tcp();
    let case = TestCase { streams: 3, ..bandwidth_case() };
    let mut ends = rig.prepared(case);
    let info = ends.destination.info().unwrap();
    let silent: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(address(&info)).unwrap()).collect();
    let mut wrong = TcpStream::connect(address(&info)).unwrap();
    wrong.write_all(&[0; 18]).unwrap();
    let begun = clock::now();
    ends.connect(&info).unwrap();
    assert!(clock::now().since(begun) < Duration::from_millis(800), "a silent stranger is not waited for");
    // The wrong one was dropped, not answered.
    wrong.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    assert!(matches!(wrong.read(&mut [0; 8]), Ok(0) | Err(_)));
    let results = ends.run(&timing(&case), &Stop::default());
    assert!(results.source.is_ok() && results.destination.is_ok(), "{results:?}");
    drop(silent);
}

#[test]
fn a_stranger_is_counted_when_the_streams_never_come() {
    let rig = Rig::tcp();
    let task = bench_core::message::CellTask {
        connect_timeout: Duration::from_millis(300),
        ..rig.task(bandwidth_case(), bench_core::cell::End::Destination)
    };
    let mut destination = rig.prepare(&task).unwrap();
    let addr = address(&destination.info().unwrap());
    let stranger = thread::spawn(move || {
        let mut stream = TcpStream::connect(addr).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        thread::sleep(Duration::from_millis(400));
    });
    let failure = destination.connect(&Peer::default(), &Stop::default()).unwrap_err();
    assert!(failure.detail.contains("0 of 1 streams"), "{failure:?}");
    assert!(failure.detail.contains("1 connections without this cell's token"), "{failure:?}");
    stranger.join().unwrap();
}

#[test]
fn a_source_with_the_wrong_token_is_turned_away() {
    let rig = Rig::tcp();
    let mut ends = rig.prepared(bandwidth_case());
    let addr = address(&ends.destination.info().unwrap());
    let forged = EndpointInfo::Tcp { addr, token: [0; 16] };
    thread::scope(|scope| {
        let stop = Stop::default();
        let accepting = scope.spawn({
            let (destination, stop) = (&mut ends.destination, stop.clone());
            move || destination.connect(&Peer::default(), &stop)
        });
        let failure = ends.source.connect(&Peer::at(forged), &Stop::default()).unwrap_err();
        assert!(failure.detail.contains(&addr.to_string()), "{failure:?}");
        stop.set();
        assert!(accepting.join().unwrap().is_err());
    });
}
