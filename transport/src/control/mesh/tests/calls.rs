//! Questions and answers.

use std::time::{Duration, Instant};

use bench_core::message::{Request, Response};

use super::harness::*;
use crate::control::identity::MeshKey;
use crate::control::mesh::{CallError, Connection};

struct Pair {
    a: Agent,
    b: Agent,
    connection: Connection,
}

async fn pair() -> Pair {
    let key = MeshKey::generate().unwrap();
    let (a, b) = (agent("a", 1, &key), agent("b", 2, &key));
    let connection = a.mesh.dial(b.addr, None).await.unwrap();
    eventually(|| b.service.connections().len() == 1).await;
    Pair { a, b, connection }
}

fn watch(wait: Duration) -> Request {
    Request::Watch { run: None, from: 0, wait }
}

#[tokio::test]
async fn both_ends_ask_over_one_connection() {
    let pair = pair().await;
    let back = pair.b.service.connections().remove(0);
    let (there, back) =
        tokio::join!(pair.connection.call(&Request::Status, PATIENCE), back.call(&Request::Status, PATIENCE));
    let reason = |response: Result<Response, CallError>| match response.unwrap() {
        Response::Invalid { reason } => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(there), format!("a at {}", pair.a.addr));
    assert_eq!(reason(back), format!("b at {}", pair.b.addr));
}

#[tokio::test]
async fn a_call_ends_at_its_deadline_and_the_connection_goes_on() {
    let pair = pair().await;
    let began = Instant::now();
    let error = pair.connection.call(&watch(PATIENCE), SECOND / 10).await.unwrap_err();
    assert!(began.elapsed() < PATIENCE / 2);
    assert!(matches!(error, CallError::Deadline { request: "watch", .. }), "{error}");
    assert!(error.to_string().contains("b at"), "{error}");
    assert!(answers(&pair.connection).await);
}

// More at once than the peer allows streams: the rest waits its turn, and none is lost.
#[tokio::test]
async fn more_calls_than_streams_are_all_answered() {
    let pair = pair().await;
    let calls: Vec<_> = (0..200)
        .map(|_| {
            let connection = pair.connection.clone();
            tokio::spawn(async move { connection.call(&watch(Duration::from_millis(20)), PATIENCE).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), Response::Done);
    }
}

#[tokio::test]
async fn an_answer_too_long_to_send_becomes_the_reason_why_there_is_none() {
    let pair = pair().await;
    let answer = pair.connection.call(&Request::Probe { epoch: EPOCH, rails: None }, PATIENCE).await.unwrap();
    assert!(
        matches!(&answer, Response::Invalid { reason } if reason.contains("at most 1048576")),
        "{answer:?}"
    );
}

#[tokio::test]
async fn closing_tells_the_other_end_why_and_ends_calls_that_wait() {
    let pair = pair().await;
    let waiting = tokio::spawn({
        let connection = pair.connection.clone();
        async move { connection.call(&watch(PATIENCE), PATIENCE).await }
    });
    tokio::time::sleep(SECOND / 20).await;
    pair.b.service.connections()[0].close("this node is drained");
    let error = waiting.await.unwrap().unwrap_err();
    assert!(
        matches!(&error, CallError::Closed { reason, .. } if reason.contains("this node is drained")),
        "{error}"
    );
    assert!(pair.connection.is_closed());
    assert!(pair.b.service.losses(1).await[0].starts_with("closed here"));
}

#[tokio::test]
async fn shutting_down_is_told_to_peers_at_once() {
    let pair = pair().await;
    pair.b.mesh.shutdown().await;
    let reason = ended(&pair.connection).await;
    assert!(reason.contains("the agent stops"), "{reason}");
}

#[tokio::test]
async fn dropping_the_mesh_ends_it_without_a_shutdown() {
    let Pair { a: _a, b, connection } = pair().await;
    drop(b.mesh);
    let reason = ended(&connection).await;
    assert!(reason.contains("the agent stops"), "{reason}");
}
