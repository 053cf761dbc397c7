//! Lists of peers as written, and what every member must agree on.

use proptest::prelude::*;

use super::*;

fn shown(peers: Result<Vec<Peer>, RosterError>) -> Result<String, RosterError> {
    Ok(peers?.iter().map(Peer::to_string).collect::<Vec<_>>().join(" "))
}

fn peers(text: &str) -> Result<String, RosterError> {
    shown(parse_peers(text, 7777))
}

fn roster(nodes: usize, electors: Option<usize>) -> Result<Roster, RosterError> {
    let peers = parse_peers(&format!("n[1-{nodes}]"), 7777)?;
    Roster::new(peers, electors, Generation(1))
}

#[test]
fn every_form_of_a_peer_is_read() {
    for (text, expected) in [
        ("a,b", "a:7777 b:7777"),
        (" a  b:9\n,c ", "a:7777 b:9 c:7777"),
        ("gpu-[008-011]:1", "gpu-008:1 gpu-009:1 gpu-010:1 gpu-011:1"),
        ("n[1-3,7]", "n1:7777 n2:7777 n3:7777 n7:7777"),
        ("n[8-11]", "n8:7777 n9:7777 n10:7777 n11:7777"),
        ("10.0.0.[1-2]", "10.0.0.1:7777 10.0.0.2:7777"),
        ("r[1-2]n[1,2].ib", "r1n1.ib:7777 r1n2.ib:7777 r2n1.ib:7777 r2n2.ib:7777"),
        ("a=10.0.0.1:5", "a=10.0.0.1:5"),
        ("n[1-2]=10.0.0.[11-12]", "n1=10.0.0.11:7777 n2=10.0.0.12:7777"),
        ("[fd00::1]:9 [fd00::2] fd00::3", "[fd00::1]:9 [fd00::2]:7777 [fd00::3]:7777"),
        ("a=[fd00::1]:9", "a=[fd00::1]:9"),
    ] {
        assert_eq!(peers(text).as_deref(), Ok(expected), "{text}");
        // What is printed is read back as the same peers.
        assert_eq!(peers(expected).as_deref(), Ok(expected));
    }
}

#[test]
fn a_wrong_list_is_refused_with_the_part_at_fault() {
    assert_eq!(peers(" , "), Err(RosterError::Empty));
    for (text, range) in [
        ("n[1-3", "[1-3"),
        ("n1-3]", "n1-3]"),
        ("n[]", ""),
        ("n[3-1]", "3-1"),
        ("n[a-b]", "a-b"),
        ("n[1-2-3]", "1-2-3"),
        ("n[001-64]", "001-64"),
        ("n[1-1234567890]", "1-1234567890"),
        ("n[1,[2]]", "[2"),
    ] {
        assert!(
            matches!(peers(text), Err(RosterError::Range { range: r, .. }) if r == range),
            "{text}: {:?}",
            peers(text)
        );
    }
    for text in ["a:0", "a:", "a:65536", "a:+1", "[fd00::1]:x"] {
        assert!(matches!(peers(text), Err(RosterError::Port { .. })), "{text}");
    }
    for text in ["a:1:2", "fd00::1:99999", "[fd00::1]9", "a..b", "10.0.0.300", "a/b", "é", "x=", "user@a"] {
        assert!(matches!(peers(text), Err(RosterError::Host { .. })), "{text}: {:?}", peers(text));
    }
    for text in ["=a", "a b=c=d", &format!("{}.{}", "x".repeat(40), "y".repeat(40))] {
        assert!(peers(text).is_err(), "{text}");
    }
    assert!(matches!(peers("n[1-2]=10.0.0.1"), Err(RosterError::Unequal { names: 2, hosts: 1, .. })));
}

#[test]
fn a_name_or_an_address_that_occurs_twice_is_named() {
    assert_eq!(
        peers("n[1-3],n2:9"),
        Err(RosterError::RepeatedName { name: NodeId::new("n2").expect("a name") })
    );
    let error = peers("a=h:1,b=h:1").expect_err("one address for two");
    assert_eq!(error.to_string(), "a and b have the same address h port 1, give each agent its own");
    assert!(peers("a=h:1,b=h:2").is_ok(), "two agents on one host");
}

#[test]
fn ranges_stop_at_4096_nodes_before_they_are_expanded() {
    assert_eq!(parse_peers("n[1-4096]", 1).map(|peers| peers.len()), Ok(4_096));
    for text in [
        "n[1-4097]",
        "n[1-999999999]",
        "n[0-999999999][0-999999999][0-999999999][0-999999999]",
        "n[1-65][1-64]",
        "a[1-4096],b",
    ] {
        assert_eq!(parse_peers(text, 1), Err(RosterError::TooMany { max: 4_096 }), "{text}");
    }
}

#[test]
fn a_pattern_whose_names_are_too_long_for_a_host_is_not_expanded() {
    // Expanded, the first would take 4 GB and the second 1.6 billion copies of a text.
    for tail in ["x".repeat(1 << 20), "[1]".repeat(400_000), "[1-1]x".repeat(200)] {
        let refused = parse_peers(&format!("n[1-4096]{tail}"), 1);
        assert!(matches!(refused, Err(RosterError::Host { .. })), "{} bytes", tail.len());
    }
}

#[test]
fn a_hostfile_has_comments_and_words_of_mpi() {
    let text =
        "# the first rack\n\ngpu-001 slots=8 max_slots=8 # a note\n\tgpu-002:9\nn[1-2] \r\na=10.0.0.1\n";
    assert_eq!(shown(parse_hostfile(text, 7)).as_deref(), Ok("gpu-001:7 gpu-002:9 n1:7 n2:7 a=10.0.0.1:7"));
    let error = parse_hostfile("a\nb c\n", 7).expect_err("two hosts on a line");
    assert!(error.to_string().starts_with("line 2: \"c\" is not understood"), "{error}");
    assert!(matches!(parse_hostfile("a\n\nb:x", 7), Err(RosterError::Line { line: 3, .. })));
    assert_eq!(parse_hostfile("# nobody", 7), Err(RosterError::Empty));
}

#[test]
fn pods_are_named_by_their_name_and_reached_through_their_service() {
    assert_eq!(
        shown(parse_pod_pattern("railmesh-[0-1]", "mesh.prod.svc", 7)).as_deref(),
        Ok("railmesh-0=railmesh-0.mesh.prod.svc:7 railmesh-1=railmesh-1.mesh.prod.svc:7")
    );
    for service in ["", ".", "mesh..svc", "a b"] {
        let refused = parse_pod_pattern("railmesh-[0-1]", service, 7);
        assert!(matches!(refused, Err(RosterError::Host { .. })), "{service:?}");
    }
    assert_eq!(parse_pod_pattern("", "mesh", 7), Err(RosterError::Empty));
}

#[test]
fn addresses_are_sorted_counted_once_and_exactly_as_many_as_expected() {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    let found = ["10.0.0.10", "10.0.0.9", "fd00::1", "::ffff:10.0.0.9"].map(address);
    assert_eq!(
        shown(peers_from_addresses(&found, 7, 3)).as_deref(),
        Ok("10.0.0.9:7 10.0.0.10:7 [fd00::1]:7")
    );
    for expected in [2, 4] {
        let error = peers_from_addresses(&found, 7, expected).expect_err("another number");
        assert_eq!(error, RosterError::Count { found: 3, expected });
        assert!(error.to_string().contains(&format!("found 3 addresses, expected {expected}")));
    }
    assert_eq!(peers_from_addresses(&[], 7, 0), Err(RosterError::Empty));
}

#[test]
fn electors_are_the_first_one_three_or_five() {
    for (nodes, electors) in [(1, 1), (2, 1), (3, 3), (4, 3), (5, 5), (4_096, 5)] {
        let roster = roster(nodes, None).expect("a roster");
        assert_eq!(roster.electors, (0..electors).map(NodeIndex).collect::<Vec<_>>(), "{nodes}");
    }
    assert_eq!(roster(9, Some(7)).map(|roster| roster.electors.len()), Ok(7));
    assert_eq!(roster(4, Some(1)).map(|roster| roster.electors.len()), Ok(1));
    for (nodes, electors) in [(4, 0), (4, 2), (4, 5), (64, 11), (64, usize::MAX)] {
        assert!(
            matches!(roster(nodes, Some(electors)), Err(RosterError::Electors { .. })),
            "{electors} of {nodes}"
        );
    }
}

#[test]
fn names_and_positions_lead_to_each_other() {
    let roster = roster(300, None).expect("a roster");
    for index in [0, 7, 299].map(NodeIndex) {
        let peer = roster.node(index).expect("a node");
        assert_eq!(roster.index_of(&peer.node), Some(index));
    }
    assert_eq!(roster.node(NodeIndex(300)), None);
    assert_eq!(roster.index_of(&NodeId::new("n301").expect("a name")), None);
    assert_eq!(roster.len(), 300);
}

#[test]
fn the_hash_changes_with_everything_members_must_agree_on() {
    let make = |text: &str, electors, generation| {
        let peers = parse_peers(text, 7).expect("peers");
        Roster::new(peers, electors, Generation(generation)).expect("a roster").hash()
    };
    let base = make("a,b,c", None, 1);
    assert_eq!(base, make("a:7 b:7 c:7", Some(3), 1));
    for other in [
        make("b,a,c", None, 1),
        make("a,b,c:8", None, 1),
        make("a=x,b,c", None, 1),
        make("a,b", None, 1),
        make("a,b,c", Some(1), 1),
        make("a,b,c", None, 2),
    ] {
        assert_ne!(base, other);
    }
    // The documented layout, hashed by another implementation of SHA-256.
    assert_eq!(base.to_string(), "fc3a61bd317482c43c0c556e58563ef4");
}

proptest! {
    #[test]
    fn no_text_panics_and_none_gives_more_than_a_mesh_may_have(
        text in "([a-c\\[\\]0-9:=., #-]|slots|::|\\[1-9\\]|\\[1-4096\\]){0,40}|\\PC{0,60}",
        port in any::<u16>(),
    ) {
        for peers in [
            parse_peers(&text, port),
            parse_hostfile(&text, port),
            parse_pod_pattern(&text, "mesh", port),
        ].into_iter().flatten() {
            prop_assert!((1..=MAX_NODES).contains(&peers.len()));
            prop_assert!(Roster::new(peers, None, Generation(1)).is_ok());
        }
    }

    #[test]
    fn a_range_has_one_padded_name_for_each_number(low in 0_u32..5_000, more in 0_u32..200, padded in any::<bool>()) {
        let high = low + more;
        let width = if padded { 5 } else { 0 };
        let names: Vec<String> = (low..=high).map(|n| format!("n{n:0width$}")).collect();
        let read = parse_peers(&format!("n[{low:0width$}-{high:0width$}]"), 1).expect("a range");
        prop_assert_eq!(read.iter().map(|peer| peer.node.to_string()).collect::<Vec<_>>(), names);
    }

    #[test]
    fn peers_survive_their_printed_form(
        names in proptest::collection::btree_map("[a-z][a-z0-9-]{0,8}", ("[a-z]{1,6}(\\.[a-z]{1,6})?", 1_u16..), 1..20)
    ) {
        let text: Vec<String> = names.iter().map(|(name, (host, port))| format!("{name}={host}:{port}")).collect();
        let read = parse_peers(&text.join(","), 1);
        prop_assume!(!matches!(read, Err(RosterError::RepeatedAddress { .. })));
        let read = read.expect("different names and addresses");
        let printed: Vec<String> = read.iter().map(Peer::to_string).collect();
        prop_assert_eq!(parse_peers(&printed.join(" "), 2), Ok(read));
    }
}
