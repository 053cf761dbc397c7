//! The bound holds, dials are shared, and nobody's connection is closed while it is used.

use std::num::NonZeroUsize;
use std::time::Duration;

use bench_core::message::{Request, Response};

use super::*;
use crate::control::identity::MeshKey;
use crate::control::mesh::tests::harness::*;

fn cache(agent: &Agent, bound: usize) -> PeerCache {
    PeerCache::new(agent.mesh.clone(), NonZeroUsize::new(bound).unwrap())
}

#[tokio::test]
async fn the_cache_holds_no_more_than_its_bound_and_closes_the_least_recently_used() {
    let key = MeshKey::generate().unwrap();
    let a = agent("a", 1, &key);
    let others: Vec<Agent> = (0..4).map(|i| agent(&format!("p{i}"), 10 + i, &key)).collect();
    let cache = cache(&a, 2);
    for i in [0, 1, 0, 2] {
        cache.get(&node(&format!("p{i}")), others[i].addr).await.unwrap();
        assert!(cache.len() <= 2);
    }
    // p0 was used after p1, so p1 had to go.
    assert!(others[1].service.losses(1).await[0].contains("not needed of late"));
    assert!(others[0].service.lost.lock().unwrap().is_empty());
    cache.get(&node("p3"), others[3].addr).await.unwrap();
    others[0].service.losses(1).await;
    assert_eq!(cache.len(), 2);
}

#[tokio::test]
async fn an_evicted_connection_is_closed_only_when_nobody_uses_it() {
    let key = MeshKey::generate().unwrap();
    let (a, b, c) = (agent("a", 1, &key), agent("b", 2, &key), agent("c", 3, &key));
    let cache = cache(&a, 1);
    let used = cache.get(&node("b"), b.addr).await.unwrap();
    let call = tokio::spawn(async move {
        let wait = Duration::from_millis(300);
        used.call(&Request::Watch { run: None, from: 0, wait }, PATIENCE).await
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    cache.get(&node("c"), c.addr).await.unwrap();
    assert_eq!(cache.len(), 1);
    assert!(b.service.lost.lock().unwrap().is_empty(), "it is still in use");
    assert_eq!(call.await.unwrap().unwrap(), Response::Done);
    b.service.losses(1).await;
}

#[tokio::test]
async fn callers_at_the_same_time_share_one_dial() {
    let key = MeshKey::generate().unwrap();
    let (a, b) = (agent("a", 1, &key), agent("b", 2, &key));
    let cache = cache(&a, 8);
    let gets: Vec<_> = (0..32)
        .map(|_| {
            let (cache, addr) = (cache.clone(), b.addr);
            tokio::spawn(async move { cache.get(&node("b"), addr).await })
        })
        .collect();
    for get in gets {
        assert!(answers(&get.await.unwrap().unwrap()).await);
    }
    assert_eq!(b.service.connections().len(), 1);
}

#[tokio::test]
async fn a_caller_that_gives_up_does_not_take_the_dial_with_it() {
    let key = MeshKey::generate().unwrap();
    let (a, b) = (agent("a", 1, &key), agent("b", 2, &key));
    let cache = cache(&a, 8);
    let first = tokio::spawn({
        let (cache, addr) = (cache.clone(), b.addr);
        async move { cache.get(&node("b"), addr).await }
    });
    tokio::task::yield_now().await;
    first.abort();
    assert!(cache.get(&node("b"), b.addr).await.is_ok());
    assert_eq!(b.service.connections().len(), 1);
}

#[tokio::test]
async fn a_closed_connection_is_dialed_again_and_a_failed_dial_is_not_remembered() {
    let key = MeshKey::generate().unwrap();
    let (a, b) = (agent("a", 1, &key), agent("b", 2, &key));
    let cache = cache(&a, 8);
    let first = cache.get(&node("b"), b.addr).await.unwrap();
    first.close("test");
    ended(&first).await;
    assert!(answers(&cache.get(&node("b"), b.addr).await.unwrap()).await);
    let wrong = cache.get(&node("c"), b.addr).await.unwrap_err();
    assert!(matches!(wrong, DialError::OtherNode { .. }), "{wrong}");
    let c = agent("c", 3, &key);
    assert!(cache.get(&node("c"), c.addr).await.is_ok());
}

// An agent that has dialed us needs no second connection: the port given here is one where nobody listens.
#[tokio::test]
async fn a_connection_that_the_peer_opened_is_used_too() {
    let key = MeshKey::generate().unwrap();
    let (a, b) = (agent("a", 1, &key), agent("b", 2, &key));
    let _theirs = b.mesh.dial(a.addr, None).await.unwrap();
    let connection = cache(&a, 8).get(&node("b"), "127.0.0.1:9".parse().unwrap()).await.unwrap();
    assert!(answers(&connection).await);
}

#[tokio::test]
async fn dropping_the_cache_closes_its_connections() {
    let key = MeshKey::generate().unwrap();
    let (a, b) = (agent("a", 1, &key), agent("b", 2, &key));
    let cache = cache(&a, 8);
    cache.get(&node("b"), b.addr).await.unwrap();
    drop(cache);
    assert!(b.service.losses(1).await[0].contains("not needed any more"));
}
