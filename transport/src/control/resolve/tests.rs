//! Against a name server of a few lines, on UDP and TCP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hickory_resolver::proto::op::{Message, MessageType};
use hickory_resolver::proto::rr::rdata::SRV;
use hickory_resolver::proto::rr::{RData, Record};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

use super::*;

/// A name server whose zone can be changed while it runs.
struct Zone {
    addr: SocketAddr,
    records: Arc<Mutex<HashMap<String, Vec<RData>>>>,
}

impl Zone {
    async fn serve(records: &[(&str, Vec<RData>)]) -> Self {
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let addr = udp.local_addr().unwrap();
        let tcp = TcpListener::bind(addr).await.unwrap();
        let records = records.iter().map(|(name, data)| ((*name).to_owned(), data.clone()));
        let records = Arc::new(Mutex::new(records.collect()));
        tokio::spawn(serve_udp(udp, Arc::clone(&records)));
        tokio::spawn(serve_tcp(tcp, Arc::clone(&records)));
        Self { addr, records }
    }

    fn resolver(&self, search: &[&str]) -> Resolver {
        Resolver::with_server(self.addr, search).unwrap()
    }
}

type Records = Mutex<HashMap<String, Vec<RData>>>;

fn answer(question: &[u8], records: &Records) -> Message {
    let mut message = Message::from_vec(question).unwrap();
    message.metadata.message_type = MessageType::Response;
    let query = message.queries[0].clone();
    let name = query.name().to_utf8().to_lowercase();
    match records.lock().unwrap().get(name.trim_end_matches('.')) {
        None => message.metadata.response_code = ResponseCode::NXDomain,
        Some(data) => {
            let wanted = data.iter().filter(|d| d.record_type() == query.query_type());
            let answers = wanted.map(|d| Record::from_rdata(query.name().clone(), 30, d.clone()));
            message.answers = answers.collect();
        }
    }
    message
}

async fn serve_udp(socket: UdpSocket, records: Arc<Records>) {
    let mut buffer = [0; 4096];
    while let Ok((bytes, from)) = socket.recv_from(&mut buffer).await {
        let mut message = answer(&buffer[..bytes], &records);
        let mut reply = message.to_vec().unwrap();
        if reply.len() > UDP_LIMIT {
            message.answers.clear();
            message.metadata.truncation = true;
            reply = message.to_vec().unwrap();
        }
        socket.send_to(&reply, from).await.ok();
    }
}

async fn serve_tcp(listener: TcpListener, records: Arc<Records>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let records = Arc::clone(&records);
        tokio::spawn(async move {
            while let Ok(length) = stream.read_u16().await {
                let mut question = vec![0; usize::from(length)];
                stream.read_exact(&mut question).await.unwrap();
                let reply = answer(&question, &records).to_vec().unwrap();
                stream.write_u16(reply.len() as u16).await.unwrap();
                stream.write_all(&reply).await.unwrap();
            }
        });
    }
}

/// What a classic name server puts into one UDP answer, bytes.
const UDP_LIMIT: usize = 512;

fn a(last: u8) -> RData {
    RData::A(Ipv4Addr::new(10, 0, 0, last).into())
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[tokio::test]
async fn literals_and_localhost_need_no_name_server() {
    let nowhere = Resolver::with_server("127.0.0.1:1".parse().unwrap(), &[]).unwrap();
    assert_eq!(nowhere.lookup("10.1.2.3").await, Ok(vec![ip("10.1.2.3")]));
    assert_eq!(nowhere.lookup("fd00::7").await, Ok(vec![ip("fd00::7")]));
    assert_eq!(nowhere.lookup("[fd00::7]").await, Ok(vec![ip("fd00::7")]));
    assert_eq!(nowhere.lookup("localhost").await, Ok(vec![ip("127.0.0.1"), ip("::1")]));
}

#[tokio::test]
async fn all_addresses_of_both_families_come_sorted() {
    let six = RData::AAAA(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).into());
    let zone = Zone::serve(&[("mesh.example", vec![a(9), a(2), six])]).await;
    let found = zone.resolver(&[]).lookup("mesh.example").await.unwrap();
    assert_eq!(found, [ip("10.0.0.2"), ip("10.0.0.9"), ip("fd00::1")]);
}

#[tokio::test]
async fn a_short_name_is_completed_by_the_search_list() {
    let zone = Zone::serve(&[("mesh.ns.svc.cluster.local", vec![a(4)])]).await;
    let resolver = zone.resolver(&["ns.svc.cluster.local", "svc.cluster.local"]);
    assert_eq!(resolver.lookup("mesh").await, Ok(vec![ip("10.0.0.4")]));
}

#[tokio::test]
async fn services_give_hosts_and_ports() {
    let target = |host| RData::SRV(SRV::new(0, 0, 7471, Name::from_utf8(host).unwrap()));
    let zone = Zone::serve(&[(
        "_quic._udp.mesh.example",
        vec![target("b.mesh.example."), target("a.mesh.example.")],
    )])
    .await;
    let found = zone.resolver(&[]).lookup_service("_quic._udp.mesh.example").await.unwrap();
    let hosts: Vec<(&str, u16)> = found.iter().map(|t| (t.host.as_str(), t.port)).collect();
    assert_eq!(hosts, [("a.mesh.example", 7471), ("b.mesh.example", 7471)]);
}

// 200 addresses do not fit a UDP answer: only TCP can bring all of them.
#[tokio::test]
async fn an_answer_too_long_for_udp_is_fetched_over_tcp() {
    let zone = Zone::serve(&[("big.example", (0..200).map(a).collect())]).await;
    assert_eq!(zone.resolver(&[]).lookup("big.example").await.unwrap().len(), 200);
}

#[tokio::test]
async fn a_name_that_is_not_there_and_a_server_that_is_silent_are_told_apart() {
    let zone = Zone::serve(&[("text.example", vec![])]).await;
    let error = zone.resolver(&[]).lookup("gone.example").await.unwrap_err();
    assert!(matches!(error, ResolveError::NotFound { .. }), "{error}");
    assert!(
        error.to_string().contains("NXDOMAIN") && error.to_string().contains(&zone.addr.to_string()),
        "{error}"
    );
    let error = zone.resolver(&[]).lookup("text.example").await.unwrap_err();
    assert!(
        matches!(&error, ResolveError::NotFound { reason, .. } if reason.contains("no such record")),
        "{error}"
    );

    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let addr = silent.local_addr().unwrap();
    let resolver = Resolver::with_server(addr, &[]).unwrap();
    let wait = Duration::from_millis(300);
    let error = resolver.lookup_until("gone.example", wait, wait).await.unwrap_err();
    assert!(matches!(error, ResolveError::Silent { .. }), "{error}");
    assert!(error.to_string().contains(&addr.to_string()), "{error}");
}

#[tokio::test]
async fn a_name_that_appears_later_is_found_before_the_deadline() {
    let zone = Zone::serve(&[]).await;
    let records = Arc::clone(&zone.records);
    tokio::spawn(async move {
        sleep(Duration::from_millis(200)).await;
        records.lock().unwrap().insert("mesh.example".to_owned(), vec![a(1)]);
    });
    let resolver = zone.resolver(&[]);
    let found = resolver.lookup_until("mesh.example", Duration::from_secs(10), Duration::from_millis(20));
    assert_eq!(found.await, Ok(vec![ip("10.0.0.1")]));
}

#[tokio::test]
async fn waiting_for_a_name_ends_at_the_deadline_with_the_last_answer() {
    let zone = Zone::serve(&[]).await;
    let began = Instant::now();
    let wait = Duration::from_secs(1);
    let error = zone.resolver(&[]).lookup_until("mesh.example", wait, wait / 10).await.unwrap_err();
    assert!(matches!(error, ResolveError::NotFound { .. }), "{error}");
    assert!(began.elapsed() < 10 * wait);
}

// A pod that was replaced has another address before the old answer's time to live (30 s here) is over.
#[tokio::test]
async fn a_changed_address_is_seen_at_once() {
    let zone = Zone::serve(&[("mesh.example", vec![a(1)])]).await;
    let resolver = zone.resolver(&[]);
    assert_eq!(resolver.lookup("mesh.example").await, Ok(vec![ip("10.0.0.1")]));
    zone.records.lock().unwrap().insert("mesh.example".to_owned(), vec![a(2)]);
    assert_eq!(resolver.lookup("mesh.example").await, Ok(vec![ip("10.0.0.2")]));
}
