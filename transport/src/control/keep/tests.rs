//! Up, down, up again; and an end where trying is pointless.

use bench_core::message::Refusal;
use tokio::time::timeout;

use super::*;
use crate::control::identity::MeshKey;
use crate::control::mesh::tests::harness::*;

fn policy() -> BackoffPolicy {
    BackoffPolicy::new(Duration::from_millis(10), Duration::from_millis(50)).unwrap()
}

async fn next(kept: &mut KeptConnection) -> LinkEvent {
    timeout(PATIENCE, kept.next()).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_lost_connection_is_reported_and_opened_again() {
    let key = MeshKey::generate().unwrap();
    let (a, b) = (agent("a", 1, &key), agent("b", 2, &key));
    let mut kept = KeptConnection::start(a.mesh.clone(), b.addr, Some(node("b")), policy());
    for round in 1..=3 {
        let LinkEvent::Up(connection) = next(&mut kept).await else { panic!("not up") };
        assert!(answers(&connection).await);
        eventually(|| b.service.connections().len() == round).await;
        b.service.connections()[round - 1].close("maintenance");
        let LinkEvent::Down { reason } = next(&mut kept).await else { panic!("not down") };
        assert!(reason.contains("maintenance"), "{reason}");
    }
}

#[tokio::test]
async fn tries_go_on_until_somebody_listens() {
    let key = MeshKey::generate().unwrap();
    let mut hasty = config(role("a", 1), Some(&key));
    hasty.limits.handshake = Duration::from_millis(100);
    let a = start(hasty);
    let place = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = place.local_addr().unwrap();
    let mut kept = KeptConnection::start(a.mesh.clone(), addr, None, policy());
    for _ in 0..2 {
        let event = next(&mut kept).await;
        assert!(matches!(event, LinkEvent::Failed { error: DialError::Silent { .. }, .. }), "{event:?}");
    }
    drop(place);
    let mut late = config(role("b", 2), Some(&key));
    late.listen = addr;
    let _b = start(late);
    loop {
        match next(&mut kept).await {
            LinkEvent::Up(_) => break,
            LinkEvent::Failed { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_final_refusal_ends_the_tries() {
    let key = MeshKey::generate().unwrap();
    let (elector, first, second) = (agent("e", 1, &key), agent("x", 2, &key), agent("x", 3, &key));
    let _held = first.mesh.dial(elector.addr, None).await.unwrap();
    let mut kept = KeptConnection::start(second.mesh.clone(), elector.addr, None, policy());
    let event = next(&mut kept).await;
    assert!(
        matches!(
            &event,
            LinkEvent::GivenUp { error: DialError::Refused { refusal: Refusal::Duplicate { .. }, .. } }
        ),
        "{event:?}"
    );
    assert!(timeout(PATIENCE, kept.next()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_refusal_that_may_pass_is_reported_each_time() {
    let key = MeshKey::generate().unwrap();
    let (elector, stranger) = (agent("e", 1, &key), agent("stranger", 2, &key));
    let mut kept = KeptConnection::start(stranger.mesh.clone(), elector.addr, None, policy());
    for _ in 0..3 {
        let event = next(&mut kept).await;
        let LinkEvent::Failed { error, retry_in } = event else { panic!("{event:?}") };
        assert_eq!(error.prospect(), Prospect::Uncertain);
        assert!(retry_in <= policy().longest());
    }
}

// An owner that reads nothing: tries go on, the connection comes up when it can, and no memory grows.
#[tokio::test]
async fn an_owner_that_does_not_read_loses_failed_tries_only() {
    let key = MeshKey::generate().unwrap();
    let (elector, stranger) = (agent("e", 1, &key), agent("stranger", 2, &key));
    let policy = BackoffPolicy::new(Duration::from_millis(1), Duration::from_millis(2)).unwrap();
    let mut kept = KeptConnection::start(stranger.mesh.clone(), elector.addr, None, policy);
    eventually(|| kept.events.len() == EVENT_DEPTH).await;
    sleep(SECOND / 10).await;
    assert_eq!(kept.events.len(), EVENT_DEPTH);
    assert!(matches!(next(&mut kept).await, LinkEvent::Failed { .. }));
}

#[tokio::test]
async fn dropping_it_closes_the_connection() {
    let key = MeshKey::generate().unwrap();
    let (a, b) = (agent("a", 1, &key), agent("b", 2, &key));
    let mut kept = KeptConnection::start(a.mesh.clone(), b.addr, None, policy());
    assert!(matches!(next(&mut kept).await, LinkEvent::Up(_)));
    eventually(|| b.service.connections().len() == 1).await;
    drop(kept);
    assert!(b.service.losses(1).await[0].contains("not needed any more"));
}
