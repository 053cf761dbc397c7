//! Who is let in and who is not, and what either side is told.

use std::net::SocketAddr;
use std::sync::Arc;

use bench_core::ids::BuildHash;
use bench_core::message::{HelloReply, Refusal, Role};

use super::harness::*;
use super::lines::Lines;
use crate::control::identity::{Holder, Identity, MeshKey};
use crate::control::mesh::{
    ControlError, DialError, Limits, Mesh, MeshConfig, NoService, Peer, Prospect, tls,
};

#[tokio::test]
async fn two_agents_with_one_key_meet_and_know_each_other() {
    let key = MeshKey::generate().unwrap();
    let (a, b) = (agent("a", 1, &key), agent("b", 2, &key));
    let connection = a.mesh.dial(b.addr, Some(&node("b"))).await.unwrap();
    assert_eq!(connection.peer().node(), Some(&node("b")));
    assert_eq!(connection.epoch(), Some(EPOCH));
    eventually(|| b.service.connections().len() == 1).await;
    let back = &b.service.connections()[0];
    assert!(
        matches!(back.peer(), Peer::Agent { node, address, .. } if node.as_str() == "a" && *address == a.addr)
    );
    assert!(answers(&connection).await && answers(back).await);
}

#[tokio::test]
async fn another_key_is_refused_in_both_directions_and_both_sides_say_so() {
    let lines = Lines::capture();
    let (a, b) = (agent("a", 1, &MeshKey::generate().unwrap()), agent("b", 2, &MeshKey::generate().unwrap()));
    for (from, to) in [(&a, &b), (&b, &a)] {
        let error = from.mesh.dial(to.addr, None).await.unwrap_err();
        assert!(matches!(error, DialError::Key { .. }), "{error}");
        assert_eq!(error.prospect(), Prospect::None);
        lines.expect(&[&from.addr.to_string(), "another mesh key", "same key file"]).await;
    }
    assert!(a.service.connections().is_empty() && b.service.connections().is_empty());
}

#[tokio::test]
async fn who_comes_without_a_key_is_told_how_to_name_one() {
    let keyed = agent("a", 1, &MeshKey::generate().unwrap());
    let config = MeshConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        key: None,
        role: Role::Client,
        build: BUILD,
        limits: Limits::default(),
    };
    let client = Mesh::bind(config, Arc::new(NoService)).unwrap();
    let text = client.dial(keyed.addr, None).await.unwrap_err().to_string();
    assert!(text.contains("--key mesh.key") && text.contains("RAILMESH_KEY"), "{text}");
}

#[tokio::test]
async fn a_peer_without_a_certificate_reaches_nothing() {
    let lines = Lines::capture();
    let key = MeshKey::generate().unwrap();
    let (a, b) = (agent("a", 1, &key), agent("b", 2, &key));
    let bystander = b.mesh.dial(a.addr, None).await.unwrap();
    let identity = Identity::issue(&key, Holder::Client).unwrap();
    let mut bare = rustls::ClientConfig::builder_with_provider(tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(tls::roots(&identity).unwrap())
        .with_no_client_auth();
    bare.alpn_protocols = vec![tls::alpn(&BUILD)];
    // Connecting succeeds: a TLS 1.3 client is not told before the server has seen that there is no certificate.
    let stranger = Raw::with(a.addr, bare.try_into().unwrap()).await;
    let error = stranger.closed().await;
    assert!(error.to_string().contains("no certificates"), "{error}");
    lines.expect(&["shows no certificate"]).await;
    assert_eq!(a.service.connections().len(), 1);
    assert!(answers(&bystander).await);
}

#[tokio::test]
async fn another_build_is_refused_in_the_handshake() {
    let lines = Lines::capture();
    let key = MeshKey::generate().unwrap();
    let a = agent("a", 1, &key);
    let newer = start(MeshConfig { build: BuildHash([8; 16]), ..config(role("b", 2), Some(&key)) });
    let error = newer.mesh.dial(a.addr, None).await.unwrap_err();
    assert!(matches!(error, DialError::Build { .. }), "{error}");
    assert!(error.to_string().contains("copy the same file to every node"));
    lines.expect(&[&newer.addr.to_string(), "another build"]).await;
}

// A build that lies in ALPN is caught by the hello as well.
#[tokio::test]
async fn a_hello_of_another_build_or_mesh_or_name_is_refused_with_both_sides_named() {
    let key = MeshKey::generate().unwrap();
    let a = agent("a", 1, &key);
    let mut build = hello(&key, role("b", 2));
    build.build = BuildHash([8; 16]);
    let mesh = hello(&MeshKey::loopback(), role("b", 2));
    let name = hello(&key, role("c", 2));
    for (said, check) in [
        (build, (|r| matches!(r, Refusal::Build { .. })) as fn(&Refusal) -> bool),
        (mesh, |r| matches!(r, Refusal::Mesh { .. })),
        (
            name,
            |r| matches!(r, Refusal::Certificate { certificate, name } if certificate == "b" && name.as_str() == "c"),
        ),
    ] {
        let peer = Raw::connect(a.addr, &key, "b").await;
        match peer.hello(&said).await {
            HelloReply::Refused(refusal) => assert!(check(&refusal), "{refusal}"),
            HelloReply::Welcome { .. } => panic!("{said:?} was welcome"),
        }
        peer.closed().await;
    }
    assert!(a.service.connections().is_empty());
}

#[tokio::test]
async fn a_refusal_of_the_service_reaches_the_dialer() {
    let lines = Lines::capture();
    let key = MeshKey::generate().unwrap();
    let (a, stranger) = (agent("a", 1, &key), agent("stranger", 2, &key));
    let error = stranger.mesh.dial(a.addr, None).await.unwrap_err();
    assert!(matches!(&error, DialError::Refused { refusal: Refusal::Unknown { .. }, .. }), "{error}");
    assert_eq!(error.prospect(), Prospect::Uncertain);
    lines.expect(&[&stranger.addr.to_string(), "stranger is not in the roster", "--peers"]).await;
}

#[tokio::test]
async fn a_dialer_notices_that_it_has_called_itself_or_another_node() {
    let key = MeshKey::generate().unwrap();
    let (a, b) = (agent("a", 1, &key), agent("b", 2, &key));
    assert!(matches!(a.mesh.dial(a.addr, None).await, Err(DialError::Itself { .. })));
    let error = a.mesh.dial(b.addr, Some(&node("c"))).await.unwrap_err();
    assert!(matches!(&error, DialError::OtherNode { found, .. } if found.as_str() == "b"), "{error}");
    b.service.losses(1).await;
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_named_with_its_port() {
    let key = MeshKey::generate().unwrap();
    let mut config = config(role("a", 1), Some(&key));
    config.limits.handshake = SECOND / 5;
    let a = start(config);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = silent.local_addr().unwrap();
    let error = a.mesh.dial(addr, None).await.unwrap_err();
    assert!(matches!(error, DialError::Silent { .. }), "{error}");
    assert!(error.to_string().contains(&format!("UDP port {}", addr.port())));
    assert_eq!(error.prospect(), Prospect::Good);
}

#[tokio::test]
async fn without_a_key_only_this_host_is_served_and_dialed() {
    for listen in ["[::]:0", "0.0.0.0:0", "192.0.2.1:0"] {
        let listen: SocketAddr = listen.parse().unwrap();
        let error = Mesh::bind(MeshConfig { listen, ..config(role("a", 1), None) }, Arc::new(NoService));
        let error = error.unwrap_err();
        assert!(matches!(error, ControlError::NoKey { .. }), "{error}");
        assert!(error.to_string().contains("railmesh keygen mesh.key"));
        assert!(error.to_string().contains("--key"));
    }
    let (a, b) = (start(config(role("a", 1), None)), start(config(role("b", 2), None)));
    assert!(a.mesh.dial(b.addr, None).await.is_ok());
    let far = a.mesh.dial("192.0.2.1:7471".parse().unwrap(), None).await;
    assert!(matches!(far, Err(DialError::NoKey { .. })));
}

#[tokio::test]
async fn one_socket_on_the_unspecified_address_serves_both_families() {
    let key = MeshKey::generate().unwrap();
    let a = start(MeshConfig { listen: "[::]:0".parse().unwrap(), ..config(role("a", 1), Some(&key)) });
    let b = start(MeshConfig { listen: "[::]:0".parse().unwrap(), ..config(Role::Client, Some(&key)) });
    let port = a.addr.port();
    for host in ["127.0.0.1", "::1"] {
        let addr = SocketAddr::new(host.parse().unwrap(), port);
        let connection = b.mesh.dial(addr, None).await.unwrap();
        assert_eq!(connection.peer().address(), addr);
    }
    eventually(|| a.service.connections().len() == 2).await;
    let peers: Vec<_> = a.service.connections().iter().map(|c| c.peer().address()).collect();
    assert!(peers.iter().any(SocketAddr::is_ipv4), "an IPv4 peer is shown as one: {peers:?}");
}

// All on one thread: a handshake that blocked another would dead-lock here.
#[tokio::test]
async fn sixty_four_dials_at_once_all_succeed_on_one_thread() {
    let key = MeshKey::generate().unwrap();
    // A busy machine takes seconds for them on one thread.
    let patient = |role| {
        let mut config = config(role, Some(&key));
        config.limits.handshake = 3 * PATIENCE;
        config.limits.hello = 3 * PATIENCE;
        config
    };
    let a = start(patient(role("a", 1)));
    let dials: Vec<_> = (0..64)
        .map(|_| {
            let (client, addr) = (start(patient(Role::Client)).mesh, a.addr);
            tokio::spawn(async move {
                let connection = client.dial(addr, None).await.unwrap();
                assert!(answers(&connection).await);
            })
        })
        .collect();
    for dial in dials {
        dial.await.unwrap();
    }
    assert_eq!(a.service.connections().len(), 64);
}
