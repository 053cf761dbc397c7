//! Peers that hold the key and break the rules. After each, a bystander's connection must still answer.

use bench_core::message::{HelloReply, Request};

use super::harness::*;
use super::lines::Lines;
use crate::control::identity::MeshKey;
use crate::control::mesh::Connection;
use crate::control::wire::{self, FrameKind};

struct Scene {
    key: MeshKey,
    agent: Agent,
    _other: Agent,
    bystander: Connection,
    lines: Lines,
}

impl Scene {
    async fn open() -> Self {
        let lines = Lines::capture();
        let key = MeshKey::generate().unwrap();
        let (agent, other) = (agent("a", 1, &key), agent("b", 2, &key));
        let bystander = other.mesh.dial(agent.addr, None).await.unwrap();
        Self { key, agent, _other: other, bystander, lines }
    }

    async fn stranger(&self) -> Raw {
        Raw::connect(self.agent.addr, &self.key, "raw").await
    }

    async fn member(&self) -> Raw {
        let raw = self.stranger().await;
        let reply = raw.hello(&hello(&self.key, role("raw", 9))).await;
        assert!(matches!(reply, HelloReply::Welcome { .. }));
        raw
    }

    /// The peer is out, one line says why, the bystander noticed nothing.
    async fn ends(&self, raw: &Raw, words: &[&str]) {
        raw.closed().await;
        self.lines.expect(words).await;
        assert!(answers(&self.bystander).await, "the mesh goes on");
    }
}

#[tokio::test]
async fn four_announced_gibibytes_close_the_connection_before_they_arrive() {
    let scene = Scene::open().await;
    let raw = scene.member().await;
    let _stream = raw.send(&[b'Q', 0xff, 0xff, 0xff, 0xff, 1, 2, 3]).await;
    scene.ends(&raw, &["4294967295 bytes", "at most 1048576"]).await;
}

#[tokio::test]
async fn an_oversize_hello_is_refused_like_any_other_frame() {
    let scene = Scene::open().await;
    let raw = scene.stranger().await;
    let _stream = raw.send(&[b'H', 0, 0x10, 0, 0]).await;
    scene.ends(&raw, &["1048576 bytes", "at most 4096"]).await;
}

#[tokio::test]
async fn garbage_closes_the_connection() {
    let scene = Scene::open().await;
    let raw = scene.member().await;
    let (mut send, _recv) = raw.send(&[b'Q', 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff]).await;
    send.finish().unwrap();
    scene.ends(&raw, &["cannot be read"]).await;
}

#[tokio::test]
async fn bytes_after_a_request_close_the_connection() {
    let scene = Scene::open().await;
    let raw = scene.member().await;
    let mut bytes = wire::frame(FrameKind::Request, &Request::Ping).unwrap();
    bytes.push(0);
    let _stream = raw.send(&bytes).await;
    scene.ends(&raw, &["too many"]).await;
}

#[tokio::test]
async fn a_request_before_the_hello_is_not_served() {
    let scene = Scene::open().await;
    let raw = scene.stranger().await;
    let request = wire::frame(FrameKind::Request, &Request::Status).unwrap();
    let (mut send, mut recv) = raw.send(&request).await;
    send.finish().unwrap();
    scene.ends(&raw, &["a frame of kind 0x51 where another one belongs"]).await;
    assert!(recv.read_to_end(100).await.is_err(), "nothing was answered");
    assert_eq!(scene.agent.service.connections().len(), 1);
}

// The hello's stream stays open and empty: without a limit the agent would hold it as long as keep-alives come.
#[tokio::test]
async fn a_peer_that_never_says_hello_is_dropped_after_the_limit() {
    let scene = Scene::open().await;
    let raw = scene.stranger().await;
    let began = std::time::Instant::now();
    let _stream = raw.send(b"H").await;
    scene.ends(&raw, &["no hello in time"]).await;
    assert!(began.elapsed() >= limits().hello);
}

#[tokio::test]
async fn a_request_that_is_given_up_half_way_harms_nobody() {
    let scene = Scene::open().await;
    let raw = scene.member().await;
    let (mut send, _recv) = raw.send(&[b'Q', 0, 0, 0, 100, 1, 2]).await;
    send.finish().unwrap();
    let (mut send, _recv) = raw.send(&[b'Q', 0, 0]).await;
    send.reset(0u32.into()).unwrap();
    let (mut send, mut recv) = raw.send(&wire::frame(FrameKind::Request, &Request::Ping).unwrap()).await;
    send.finish().unwrap();
    let answer: bench_core::message::Response = wire::read(&mut recv, &[FrameKind::Response]).await.unwrap();
    assert_eq!(answer, bench_core::message::Response::Pong);
    assert_eq!(scene.lines.all(), [""; 0]);
}

#[tokio::test]
async fn a_flood_of_refusals_fills_no_log() {
    let scene = Scene::open().await;
    let wrong = agent("c", 3, &MeshKey::generate().unwrap());
    for _ in 0..4 {
        let dials: Vec<_> = (0..25)
            .map(|_| {
                let (mesh, addr) = (wrong.mesh.clone(), scene.agent.addr);
                tokio::spawn(async move { mesh.dial(addr, None).await.map(drop) })
            })
            .collect();
        for dial in dials {
            assert!(dial.await.unwrap().is_err());
        }
    }
    scene.lines.expect(&["more connections were refused"]).await;
    let lines = scene.lines.all().len();
    assert!((11..60).contains(&lines), "{lines} lines for 100 refusals");
    assert!(answers(&scene.bystander).await);
}
