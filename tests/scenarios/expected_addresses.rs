//! A roster of plain address records: all agents confirm one set before anybody begins.
//!
//! Proof, because each agent asks a name server of its own where the views are to differ, and what has begun would say
//! so in its log.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::support::dns::Dns;
use crate::support::exclusive::machine;
use crate::support::mesh::{Mesh, MeshSpec};
use crate::support::process::Finished;
use crate::support::site::Site;
use crate::support::waiting::PATIENCE;

#[test]
fn agents_confirm_the_set_that_their_name_server_comes_to_and_measure() {
    let _alone = machine();
    let site = named_by_address(3);
    let all = addresses(&site);
    // Too few; then as many as expected, but another set; then the right one.
    let dns = Dns::serving(&all[..2]);
    let mesh = spec(site, &dns, "30s").launch();
    std::thread::sleep(Duration::from_secs(1));
    dns.serve(&[all[0], all[1], stranger(&all)]);
    std::thread::sleep(Duration::from_secs(2));
    dns.serve(&[all[2], all[1], all[0]]);
    mesh.await_members(3);
    mesh.sweep(&["-t", "tcp_bw", "-D", "200ms", "--rate-limit", "200M", "-w", "1M"]).exits(0);
}

#[test]
fn two_views_of_the_set_begin_nothing_and_each_says_who_has_not_confirmed() {
    let _alone = machine();
    let site = named_by_address(3);
    let all = addresses(&site);
    let dns = Dns::serving(&all);
    let other = Dns::serving(&[all[0], all[2], stranger(&all)]);
    let mut mesh = spec(site, &dns, "6s")
        .flags_of(3, &["--name", &all[2].to_string(), "--dns", &other.address()])
        .launch();
    let ended = finish(&mut mesh);
    for node in &ended {
        assert_eq!(node.code, 3, "{node}");
        assert!(node.stderr.contains("not every node has confirmed this set"), "{node}");
        assert!(!node.stderr.contains("founds the mesh"), "{node}");
    }
    assert!(ended[0].stderr.contains(&all[2].to_string()), "who has another view is named: {}", ended[0]);
}

#[test]
fn a_set_of_which_a_node_never_comes_is_confirmed_by_nobody() {
    let _alone = machine();
    let site = named_by_address(4);
    let all = addresses(&site);
    let dns = Dns::serving(&all);
    // Three of four electors' seats are taken: without the confirmation they would go on without the fourth node.
    let mut mesh = spec(site, &dns, "4s").without(4).launch();
    for node in finish(&mut mesh) {
        assert_eq!(node.code, 3, "{node}");
        assert!(node.stderr.contains(&format!("{} has not joined", all[3])), "{node}");
    }
}

#[test]
fn fewer_or_more_addresses_than_expected_end_with_3_and_are_named() {
    let site = named_by_address(3);
    let all = addresses(&site);
    for seen in [&all[..2], &[all[0], all[1], all[2], stranger(&all)]] {
        let dns = Dns::serving(seen);
        let mut mesh = spec(site.clone(), &dns, "2s").without(2).without(3).launch();
        let ended = finish(&mut mesh);
        let node = &ended[0];
        assert_eq!(node.code, 3, "{node}");
        assert!(node.stderr.contains(&format!("found {} addresses, expected 3", seen.len())), "{node}");
        assert!(seen.iter().all(|address| node.stderr.contains(&address.to_string())), "{node}");
    }
}

/// Nodes on loopback, named as plain address records name them.
fn named_by_address(nodes: u8) -> Site {
    let mut site = Site::loopback(nodes, 1);
    for node in &mut site.nodes {
        node.name = node.control.ip().to_string();
    }
    site
}

fn addresses(site: &Site) -> Vec<Ipv4Addr> {
    let own = site.nodes.iter().map(|node| match node.control.ip() {
        IpAddr::V4(address) => address,
        IpAddr::V6(address) => panic!("{address} is not of a loopback site"),
    });
    own.collect()
}

/// An address where nobody is.
fn stranger(all: &[Ipv4Addr]) -> Ipv4Addr {
    let [a, b, _, d] = all[0].octets();
    Ipv4Addr::new(a, b, 99, d)
}

fn spec(site: Site, dns: &Dns, join_timeout: &str) -> MeshSpec {
    let service = format!("mesh.test:{}", site.nodes[0].control.port());
    let count = site.nodes.len().to_string();
    let names: Vec<String> = site.nodes.iter().map(|node| node.name.clone()).collect();
    let spec = MeshSpec::on(site).roster(&[
        "--service",
        &service,
        "--expect",
        &count,
        "--join-timeout",
        join_timeout,
    ]);
    (1..=names.len() as u8).fold(spec, |spec, node| {
        spec.flags_of(node, &["--name", &names[usize::from(node) - 1], "--dns", &dns.address()])
    })
}

fn finish(mesh: &mut Mesh) -> Vec<Finished> {
    mesh.take_agents().into_iter().map(|agent| agent.finish(PATIENCE)).collect()
}
