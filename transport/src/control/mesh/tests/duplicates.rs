//! Two processes under one name: the living one keeps it, a dead one loses it.

use bench_core::ids::BootId;
use bench_core::message::Refusal;

use super::harness::*;
use super::lines::Lines;
use crate::control::identity::MeshKey;
use crate::control::mesh::{DialError, Prospect};

#[tokio::test]
async fn a_second_agent_with_a_living_ones_name_is_refused_and_told_where_that_is() {
    let lines = Lines::capture();
    let key = MeshKey::generate().unwrap();
    let (elector, first, second) = (agent("e", 1, &key), agent("x", 2, &key), agent("x", 3, &key));
    let held = first.mesh.dial(elector.addr, None).await.unwrap();
    let error = second.mesh.dial(elector.addr, None).await.unwrap_err();
    match &error {
        DialError::Refused { refusal: Refusal::Duplicate { name, address, boot }, .. } => {
            assert_eq!(name, &node("x"));
            assert_eq!(address, &first.addr.to_string());
            assert_eq!(*boot, BootId([2; 16]));
        }
        other => panic!("{other}"),
    }
    assert_eq!(error.prospect(), Prospect::None);
    lines.expect(&[&second.addr.to_string(), "x is taken by a living agent", "--name"]).await;
    assert!(answers(&held).await, "the first one's connection goes on");
    assert_eq!(elector.service.connections().len(), 1);
}

#[tokio::test]
async fn an_agent_with_the_electors_own_name_is_refused() {
    let key = MeshKey::generate().unwrap();
    let (elector, second) = (agent("e", 1, &key), agent("e", 2, &key));
    let error = second.mesh.dial(elector.addr, None).await.unwrap_err();
    assert!(
        matches!(&error, DialError::Refused { refusal: Refusal::Duplicate { address, .. }, .. } if *address == elector.addr.to_string()),
        "{error}"
    );
}

// The relay is cut, so the first process seems dead: it closes nothing and answers nothing.
#[tokio::test]
async fn a_new_process_takes_the_name_of_a_dead_one() {
    let key = MeshKey::generate().unwrap();
    let (elector, first, second) = (agent("e", 1, &key), agent("x", 2, &key), agent("x", 3, &key));
    let relay = Relay::to(elector.addr).await;
    let _held = first.mesh.dial(relay.addr, None).await.unwrap();
    relay.cut();
    let began = std::time::Instant::now();
    let connection = second.mesh.dial(elector.addr, None).await.unwrap();
    assert!(began.elapsed() >= limits().ping, "the first one was given its time");
    assert!(answers(&connection).await);
    let reasons = elector.service.losses(1).await;
    assert!(reasons[0].contains("new process"), "{reasons:?}");
}

#[tokio::test]
async fn two_newcomers_cannot_both_take_the_name_of_a_dead_agent() {
    let key = MeshKey::generate().unwrap();
    let (elector, first) = (agent("e", 1, &key), agent("x", 2, &key));
    let (second, third) = (agent("x", 3, &key), agent("x", 4, &key));
    let relay = Relay::to(elector.addr).await;
    let _held = first.mesh.dial(relay.addr, None).await.unwrap();
    relay.cut();
    let (second, third) =
        tokio::join!(second.mesh.dial(elector.addr, None), third.mesh.dial(elector.addr, None));
    assert_eq!([second.is_ok(), third.is_ok()].iter().filter(|ok| **ok).count(), 1);
    let error = second.and(third).unwrap_err();
    assert!(matches!(error, DialError::Refused { refusal: Refusal::Duplicate { .. }, .. }), "{error}");
}

#[tokio::test]
async fn the_same_process_coming_in_again_replaces_its_connection_at_once() {
    let key = MeshKey::generate().unwrap();
    let (elector, first) = (agent("e", 1, &key), agent("x", 2, &key));
    let relay = Relay::to(elector.addr).await;
    let old = first.mesh.dial(relay.addr, None).await.unwrap();
    let new = first.mesh.dial(elector.addr, None).await.unwrap();
    assert!(ended(&old).await.contains("connected anew"));
    assert!(answers(&new).await);
    assert!(elector.service.losses(1).await[0].contains("connected anew"));
}

#[tokio::test]
async fn agents_that_dial_each_other_keep_both_connections() {
    let key = MeshKey::generate().unwrap();
    let (a, b) = (agent("a", 1, &key), agent("b", 2, &key));
    let (there, back) = tokio::join!(a.mesh.dial(b.addr, None), b.mesh.dial(a.addr, None));
    let (there, back) = (there.unwrap(), back.unwrap());
    assert!(answers(&there).await && answers(&back).await);
}

#[tokio::test]
async fn dialing_a_name_that_a_living_agent_of_another_process_has_is_refused_here() {
    let key = MeshKey::generate().unwrap();
    let (a, first, second) = (agent("a", 1, &key), agent("x", 2, &key), agent("x", 3, &key));
    let held = first.mesh.dial(a.addr, None).await.unwrap();
    let error = a.mesh.dial(second.addr, None).await.unwrap_err();
    assert!(matches!(error, DialError::Refused { refusal: Refusal::Duplicate { .. }, .. }), "{error}");
    assert!(answers(&held).await);
}
