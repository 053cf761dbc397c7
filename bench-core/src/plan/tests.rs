//! The text form of plans, from file and flags to a plan and back.

use crate::verbs::{FlowLabels, Memory, PathMtu, RdmaOptions};
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::ids::NodeId;
use crate::units::{BitsPerSecond, Bytes};

fn plan(toml: &str) -> Result<Plan, PlanError> {
    PlanSpec::from_toml(toml)?.validate()
}

fn titles(plan: &Plan) -> Vec<String> {
    plan.cases.iter().map(TestCase::title).collect()
}

#[test]
fn an_empty_plan_measures_bandwidth_and_latency_over_tcp_between_all_pairs() {
    let plan = plan("").expect("a valid plan");
    assert_eq!(titles(&plan), ["tcp_bw 128K", "tcp_lat 64"]);
    assert_eq!(plan.cases[0].window, Duration::from_secs(2));
    assert_eq!(plan.cases[0].warmup, Duration::from_millis(200));
    assert_eq!(plan.cases[0].streams, 1);
    assert_eq!(plan.pattern, Pattern::Pairs);
    assert_eq!(plan.budget, Budget::Auto);
    assert_eq!(plan.gates, Gates::population_only());
    assert_eq!(plan.retest, Retest::Suspects);
}

#[test]
fn every_key_reaches_the_plan() {
    let plan = plan(
        r#"
        tests = ["tcp_lat", "tcp_bw"]
        sizes = ["64K:128K", 1048576]
        latency_sizes = 8
        streams = 4
        wait = "spinning"
        duration = 0.5
        warmup = "1s"
        verify = "sampled"
        rate_limit = "2G"
        pattern = "pairs"
        duplex = "both"
        rail_mode = "parallel"
        rails = [2, 0]
        budget = "10m"
        seed = 18446744073709551615
        retest = "never"
        prepare_timeout = 30

        [gates]
        min_bandwidth = 380e9
        max_latency = "30us"
        min_line_rate_share = 0.9
        population = { min_cells = 12 }
        "#,
    )
    .expect("a valid plan");
    assert_eq!(titles(&plan), ["tcp_lat 8", "tcp_bw 64K", "tcp_bw 128K", "tcp_bw 1M"]);
    let (lat, bw) = (plan.cases[0], plan.cases[3]);
    assert_eq!((lat.streams, lat.rate_limit), (1, None));
    assert_eq!((bw.streams, bw.rate_limit), (4, Some(BitsPerSecond(2e9))));
    for case in [lat, bw] {
        assert_eq!(case.wait, WaitMode::Spinning);
        assert_eq!(case.verify, Verify::Sampled);
        assert_eq!(case.window, Duration::from_millis(500));
        assert_eq!(case.warmup, Duration::from_secs(1));
    }
    assert_eq!((plan.duplex, plan.rail_mode), (Duplex::Both, RailMode::Parallel));
    assert_eq!(plan.rails, Some(vec![RailId(2), RailId(0)]));
    assert_eq!(plan.budget, Budget::Time(Duration::from_secs(600)));
    assert_eq!((plan.seed, plan.retest), (u64::MAX, Retest::Never));
    assert_eq!(plan.prepare_timeout, Duration::from_secs(30));
    assert_eq!(plan.gates.min_bandwidth, Some(BitsPerSecond(380e9)));
    assert_eq!(plan.gates.max_latency, Some(Duration::from_micros(30)));
    assert_eq!(plan.gates.min_line_rate_share, Some(0.9));
    let default = PopulationGate::default();
    assert_eq!(plan.gates.population, Some(PopulationGate { min_cells: 12, ..default }));
}

#[test]
fn a_test_table_takes_from_the_plan_what_it_leaves_out() {
    let plan = plan(
        r#"
        duration = "1s"
        streams = 2
        [[test]]
        kind = "tcp_bw"
        size = "1M"
        streams = 8
        [[test]]
        kind = "tcp_bw"
        duration = "3s"
        [[test]]
        kind = "tcp_lat"
        "#,
    )
    .expect("a valid plan");
    let shape = |case: &TestCase| (case.streams, case.window.as_secs(), case.size);
    assert_eq!(
        plan.cases.iter().map(shape).collect::<Vec<_>>(),
        [(8, 1, Bytes(1 << 20)), (2, 3, Bytes(128 << 10)), (1, 1, Bytes(64))]
    );
}

#[test]
fn rails_can_be_named_by_node_by_range_and_for_everybody_else() {
    let plan = plan(
        r#"
        [rails_of]
        "gpu-[1-2]" = ["mlx5_5", "mlx5_6:2"]
        head = ["ens1"]
        "*" = ["mlx5_0"]
        "#,
    )
    .expect("a valid plan");
    let of = |node: &str| plan.rails_of.of(&NodeId::new(node).unwrap()).map(<[String]>::to_vec);
    let named = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(of("gpu-2"), named(&["mlx5_5", "mlx5_6:2"]));
    assert_eq!(of("head"), named(&["ens1"]));
    assert_eq!(of("gpu-3"), named(&["mlx5_0"]));
    let roster = ["gpu-1", "head"].map(|name| NodeId::new(name).unwrap());
    assert_eq!(plan.rails_of.stranger(&roster).map(NodeId::as_str), Some("gpu-2"));
}

#[test]
fn rails_of_that_cannot_be_used_are_refused_with_their_key() {
    let cases = [
        ("a = []", "a", "names no device"),
        ("\"n[1-2]\" = [\"x\"]\nn2 = [\"y\"]", "n[1-2]", "n2 is named by another key too"),
        ("\"n[2-1]\" = [\"x\"]", "n[2-1]", "2-1"),
        ("a = [\"\"]", "a", "1 to 80 characters"),
    ];
    for (text, key, part) in cases {
        let error = plan(&format!("[rails_of]\n{text}")).unwrap_err();
        assert!(matches!(&error, PlanError::RailsOf { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains(&format!("{key:?}")) && said.contains(part), "{text}: {said}");
    }
}

#[test]
fn errors_of_the_text_name_line_and_key_and_what_is_known() {
    let cases = [
        ("\ntest_size = 4", 2, "test_size", "`latency_sizes`"),
        ("seed = 1\nduration = \"2x\"", 2, "duration", "such as 2s"),
        ("tests = [\n \"tcp_bw\",\n \"tcp_bx\"]", 3, "tests", "`tcp_lat`"),
        ("streams = -1", 1, "streams", "-1"),
        ("sizes = [\"64K\",\n\"64Q\"]", 2, "sizes", "64Q"),
        ("[gates]\nmin_bandwidth = true", 2, "gates.min_bandwidth", "a rate such as"),
        ("[gates.population]\nfloor = 1", 2, "gates.population.floor", "`bandwidth_floor`"),
        ("[gates]\npopulation = \"on\"", 2, "gates.population", "\"off\""),
        ("[[test]]\nkind = \"tcp_bw\"\nsteams = 2", 3, "test.steams", "`streams`"),
        ("[[test]]\nsize = 1", 1, "test", "`kind`"),
        ("budget = \"soon\"", 1, "budget", "10m"),
        ("pattern = \"ring\"", 1, "pattern", "`shift`"),
    ];
    for (text, line, key, hint) in cases {
        match PlanSpec::from_toml(text) {
            Err(PlanError::Key { line: l, key: k, message }) => {
                assert_eq!((l, k.as_str()), (line, key), "{text}");
                assert!(message.contains(hint), "{text}: {message}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(matches!(PlanSpec::from_toml("seed = 1\nwhat is this"), Err(PlanError::Syntax { line: 2, .. })));
}

#[test]
fn values_outside_their_bounds_are_refused_by_key() {
    for (text, refused) in [
        ("duration = \"49ms\"", "duration"),
        ("duration = \"3601s\"", "duration"),
        ("warmup = \"11m\"", "warmup"),
        ("streams = 0", "streams"),
        ("streams = 257", "streams"),
        ("sizes = \"2G\"", "sizes"),
        ("latency_sizes = \"2M\"", "latency_sizes"),
        ("[[test]]\nkind = \"tcp_lat\"\nsize = \"2M\"", "test.sizes"),
        ("rate_limit = \"1K\"", "rate_limit"),
        ("budget = \"8h\"\nprepare_timeout = \"1ms\"", "prepare_timeout"),
        ("budget = \"0.5s\"", "budget"),
        ("[gates]\nmin_line_rate_share = 1.5", "gates.min_line_rate_share"),
        ("[gates]\nmin_line_rate_share = nan", "gates.min_line_rate_share"),
        ("[gates]\nmax_latency = \"2m\"", "gates.max_latency"),
        ("[gates.population]\nbandwidth_floor = 0.0", "gates.population.bandwidth_floor"),
        ("[gates.population]\nlatency_floor = inf", "gates.population.latency_floor"),
        ("[gates.population]\ndeviations = 0.5", "gates.population.deviations"),
        ("[gates.population]\nmin_cells = 2", "gates.population.min_cells"),
    ] {
        assert!(
            matches!(plan(text), Err(PlanError::OutOfRange { key, .. }) if key == refused),
            "{text}: {:?}",
            plan(text)
        );
    }
}

#[test]
fn contradictions_are_refused_each_with_its_remedy() {
    assert_eq!(plan("tests = []"), Err(PlanError::Empty { key: "tests" }));
    assert_eq!(plan("test = []"), Err(PlanError::Empty { key: "test" }));
    assert_eq!(plan("sizes = []"), Err(PlanError::Empty { key: "sizes" }));
    assert_eq!(plan("rails = []"), Err(PlanError::Empty { key: "rails" }));
    assert_eq!(plan("rails = [1, 2, 1]"), Err(PlanError::RepeatedRail { rail: RailId(1) }));
    assert_eq!(
        plan("tests = [\"tcp_bw\", \"tcp_bw\"]"),
        Err(PlanError::RepeatedTest { kind: TestKind::TcpBw })
    );
    assert_eq!(
        plan("pattern = \"shift\"\nduplex = \"both\""),
        Err(PlanError::Duplex { pattern: Pattern::Shift })
    );
    assert_eq!(plan("tests = [\"tcp_bw\"]\n[[test]]\nkind = \"tcp_lat\""), Err(PlanError::TwoTestLists));
    for key in ["streams = 2", "rate_limit = \"1G\""] {
        let refused = plan(&format!("[[test]]\nkind = \"tcp_lat\"\n{key}"));
        assert!(matches!(refused, Err(PlanError::DoesNotApply { .. })), "{key}");
    }
    assert!(matches!(plan("sizes = [\"64K:1M\", \"128K\"]"), Err(PlanError::Sizes { key: "sizes", .. })));
    let many: Vec<String> = (1..=1_000).map(|size| size.to_string()).collect();
    assert!(matches!(
        plan(&format!("sizes = [{}]", many.join(","))),
        Err(PlanError::TooManyCases { cases: 1_001, max: 1_000 })
    ));
}

#[test]
fn flags_win_over_the_file_and_over_its_test_tables() {
    let file = PlanSpec::from_toml(
        r#"
        seed = 7
        duration = "1s"
        [[test]]
        kind = "tcp_bw"
        sizes = "1M"
        duration = "9s"
        [[test]]
        kind = "tcp_lat"
        [gates]
        max_latency = "30us"
        population = { min_cells = 12, deviations = 5.0 }
        "#,
    )
    .expect("a valid plan");
    let flags = PlanSpec::from_toml(
        r#"
        duration = "3s"
        streams = 4
        latency_sizes = "8"
        [gates]
        min_bandwidth = "1G"
        population = { min_cells = 20 }
        "#,
    )
    .expect("a valid plan");
    let plan = file.clone().overridden_by(flags).validate().expect("a valid plan");
    assert_eq!(titles(&plan), ["tcp_bw 1M", "tcp_lat 8"]);
    assert!(plan.cases.iter().all(|case| case.window == Duration::from_secs(3)));
    assert_eq!((plan.cases[0].streams, plan.cases[1].streams), (4, 1));
    assert_eq!(plan.seed, 7);
    assert_eq!(plan.gates.max_latency, Some(Duration::from_micros(30)));
    assert_eq!(plan.gates.min_bandwidth, Some(BitsPerSecond(1e9)));
    let population = plan.gates.population.expect("the file turns it on");
    assert_eq!((population.min_cells, population.deviations), (20, 5.0));

    let tests = PlanSpec { tests: Some(vec![TestKind::TcpLat]), ..PlanSpec::default() };
    assert_eq!(titles(&file.overridden_by(tests).validate().expect("a valid plan")), ["tcp_lat 64"]);
}

#[test]
fn an_rdma_test_has_its_own_defaults_and_takes_the_tables_field_by_field() {
    let plan = plan(
        "[rdma]\ndepth = 64\nservice_level = 1\n[[test]]\nkind = \"write_bw\"\nstreams = 2\nrdma = { depth = 16 }\n\
         [[test]]\nkind = \"read_lat\"\n[[test]]\nkind = \"tcp_bw\"\nwait = \"blocking\"",
    )
    .expect("a valid plan");
    assert_eq!(titles(&plan), ["write_bw 64K", "read_lat 8", "tcp_bw 128K"]);
    let rdma: Vec<_> = plan.cases.iter().map(|case| case.rdma.map(|o| (o.depth, o.service_level))).collect();
    assert_eq!(rdma, [Some((16, 1)), Some((64, 1)), None]);
    let waits: Vec<_> = plan.cases.iter().map(|case| case.wait).collect();
    assert_eq!(waits, [WaitMode::Spinning, WaitMode::Spinning, WaitMode::Blocking]);
}

#[test]
fn what_does_not_apply_to_rdma_or_tcp_is_refused() {
    for (kind, line) in [
        ("write_bw", "rate_limit = \"1G\""),
        ("write_lat", "rate_limit = \"1G\""),
        ("read_bw", "wait = \"blocking\""),
        ("send_lat", "streams = 2"),
        ("tcp_bw", "rdma = { depth = 2 }"),
    ] {
        let refused = plan(&format!("[[test]]\nkind = \"{kind}\"\n{line}"));
        assert!(matches!(refused, Err(PlanError::DoesNotApply { .. })), "{kind} {line}: {refused:?}");
    }
    let paced = plan("tests = [\"write_bw\"]\nrate_limit = \"1G\"");
    assert!(matches!(paced, Err(PlanError::DoesNotApply { .. })), "{paced:?}");
    for line in [
        "mtu = 1500",
        "timeout = 23",
        "timeout = 0",
        "service_level = 16",
        "flow_label = 1048576",
        "pkey = 0",
    ] {
        let refused =
            plan(&format!("tests = [\"write_bw\"]\n[rdma]\n{line}")).map_err(|error| error.to_string());
        let key = line.split(' ').next().expect("a key");
        assert!(refused.as_ref().is_err_and(|text| text.contains(key)), "{line}: {refused:?}");
    }
    assert_eq!(
        plan("tests = [\"write_bw\"]\n[rdma]\npost_list = 9\ndepth = 8"),
        Err(PlanError::PostListAboveDepth { post_list: 9, depth: 8 })
    );
}

#[test]
fn every_flag_that_is_set_wins_and_every_other_leaves_the_file_as_it_is() {
    let whole = |n: u16, word: [&str; 9]| {
        let [wait, verify, pattern, duplex, rail_mode, retest, mtu, flow_labels, memory] = word;
        PlanSpec::from_toml(&format!(
            r#"
            tests = ["tcp_bw"]
            sizes = {n}
            latency_sizes = {n}
            streams = {n}
            wait = "{wait}"
            duration = {n}
            warmup = {n}
            verify = "{verify}"
            rate_limit = {n}
            pattern = "{pattern}"
            duplex = "{duplex}"
            rail_mode = "{rail_mode}"
            rails = [{n}]
            budget = {n}
            seed = {n}
            retest = "{retest}"
            prepare_timeout = {n}
            rdma = {{ depth = {n}, post_list = {n}, cq_mod = {n}, inline_bytes = {n}, mtu = {mtu}, gid_index = {n}, service_level = {n}, traffic_class = {n}, flow_label = {n}, flow_labels = "{flow_labels}", pkey = {n}, timeout = {n}, retry_count = {n}, rnr_retry = {n}, rd_atomic = {n}, memory = "{memory}" }}
            gates.min_bandwidth = {n}
            gates.max_latency = {n}
            gates.min_line_rate_share = {n}.0
            gates.population.bandwidth_floor = {n}.0
            gates.population.latency_floor = {n}.0
            gates.population.deviations = {n}.0
            gates.population.min_cells = {n}
            "#
        ))
        .expect("every key")
    };
    let file = whole(1, ["blocking", "off", "pairs", "one_way", "serial", "never", "1024", "same", "host"]);
    let flags = whole(
        2,
        [
            "spinning",
            "sampled",
            "shift",
            "both",
            "parallel",
            "suspects",
            "2048",
            "per_queue_pair",
            "huge_pages",
        ],
    );
    assert_eq!(file.clone().overridden_by(flags.clone()), flags);
    assert_eq!(file.clone().overridden_by(PlanSpec::default()), file);
    assert_eq!(PlanSpec::default().overridden_by(flags.clone()), flags);
}

#[test]
fn the_plan_as_run_lists_equal_tests_once_with_all_their_sizes() {
    let text = plan("tests = [\"tcp_bw\"]\nsizes = \"64K:1M\"").expect("a valid plan").to_toml();
    assert_eq!(text.matches("[[test]]").count(), 1, "{text}");
    assert!(text.contains("\"512K\""), "{text}");
}

prop_compose! {
    fn any_rdma()(
        (depth, post_list, cq_mod) in (1_u16..=8_192, 1_u16..=256, 1_u16..=8_192),
        (inline_bytes, mtu, gid_index) in
            (option::of(0_u16..=4_096), option::of(select(PathMtu::ALL.to_vec())), option::of(any::<u8>())),
        (service_level, traffic_class, flow_label) in (0_u8..=15, any::<u8>(), 0_u32..=0xf_ffff),
        (pkey, timeout, rd_atomic) in (option::of(1_u16..), 1_u8..=22, option::of(1_u8..=128)),
        (retry_count, rnr_retry) in (0_u8..=7, 0_u8..=7),
        flow_labels in select(vec![FlowLabels::Same, FlowLabels::PerQueuePair]),
        memory in select(vec![Memory::Host, Memory::HugePages]),
    ) -> RdmaOptions {
        RdmaOptions {
            depth,
            post_list: post_list.min(depth),
            cq_mod: Some(cq_mod),
            inline_bytes,
            mtu,
            gid_index,
            service_level,
            traffic_class,
            flow_label,
            flow_labels,
            pkey,
            timeout,
            retry_count,
            rnr_retry,
            rd_atomic,
            memory,
        }
    }
}

prop_compose! {
    fn any_case()(
        kind in select(TestKind::ALL.to_vec()),
        size in 1_u64..=1 << 20,
        streams in 1_u16..=256,
        wait in select(vec![WaitMode::Blocking, WaitMode::Spinning]),
        window in 50_000_000_u64..=3_600_000_000_000,
        warmup in 0_u64..=600_000_000_000,
        verify in select(vec![Verify::Off, Verify::Sampled]),
        rate in option::of(1e6..=1e13_f64),
        rdma in any_rdma(),
    ) -> TestCase {
        let latency = kind.spread() == Spread::Latency;
        let tcp = kind.means() == Means::Tcp;
        TestCase {
            kind,
            size: Bytes(size),
            streams: if latency { 1 } else { streams },
            wait: if tcp { wait } else { WaitMode::Spinning },
            window: Duration::from_nanos(window),
            warmup: Duration::from_nanos(warmup),
            verify,
            rate_limit: if latency || !tcp { None } else { rate.map(BitsPerSecond) },
            rdma: if tcp { None } else { Some(rdma) },
        }
    }
}

prop_compose! {
    /// Stretches of equal cases with several sizes, as sweeps have, and repeated ones.
    fn any_cases()(stretches in vec((any_case(), vec(1_u64..=4_096, 0..4)), 1..6)) -> Vec<TestCase> {
        stretches
            .into_iter()
            .flat_map(|(case, sizes)| {
                let more = sizes.into_iter().map(move |size| TestCase { size: Bytes(size), ..case });
                std::iter::once(case).chain(more)
            })
            .collect()
    }
}

prop_compose! {
    fn any_gates()(
        min_bandwidth in option::of(1.0..=1e13_f64),
        max_latency in option::of(1_u64..=60_000_000_000),
        min_line_rate_share in option::of(0.001..=1.0_f64),
        population in option::of((0.001..=1.0_f64, 0.001..=100.0_f64, 1.0..=1e3_f64, 3_u32..=1_000_000)),
    ) -> Gates {
        Gates {
            min_bandwidth: min_bandwidth.map(BitsPerSecond),
            max_latency: max_latency.map(Duration::from_nanos),
            min_line_rate_share,
            population: population.map(|(bandwidth_floor, latency_floor, deviations, min_cells)| PopulationGate {
                bandwidth_floor,
                latency_floor,
                deviations,
                min_cells,
            }),
        }
    }
}

prop_compose! {
    fn any_rails_of()(
        spec in proptest::collection::btree_map("[a-z]{1,5}-[0-9]{1,2}|[*]", vec("[a-z0-9_:.]{1,12}", 1..5), 0..4)
    ) -> RailsOf {
        RailsOf::from_spec(spec).expect("names and devices within their bounds")
    }
}

prop_compose! {
    fn any_plan()(
        cases in any_cases(),
        pattern in select(Pattern::ALL.to_vec()),
        duplex in select(vec![Duplex::OneWay, Duplex::Both]),
        rail_mode in select(vec![RailMode::Serial, RailMode::Parallel]),
        rails in option::of(proptest::collection::btree_set(any::<u16>(), 1..9)),
        rails_of in any_rails_of(),
        budget in prop_oneof![
            Just(Budget::Auto),
            Just(Budget::Off),
            (1_000_000_000_u64..=604_800_000_000_000).prop_map(|t| Budget::Time(Duration::from_nanos(t))),
        ],
        seed in any::<u64>(),
        gates in any_gates(),
        retest in select(vec![Retest::Suspects, Retest::Never]),
        timeout in 1_000_000_000_u64..=600_000_000_000,
    ) -> Plan {
        Plan {
            cases,
            pattern,
            duplex: if pattern == Pattern::Pairs { duplex } else { Duplex::OneWay },
            rail_mode,
            rails: rails.map(|rails| rails.into_iter().rev().map(RailId).collect()),
            rails_of,
            budget,
            seed,
            gates,
            retest,
            prepare_timeout: Duration::from_nanos(timeout),
        }
    }
}

proptest! {
    #[test]
    fn the_plan_as_run_reads_back_as_the_same_plan(original in any_plan()) {
        let text = original.to_toml();
        prop_assert_eq!(plan(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?, original);
    }

    #[test]
    fn no_text_panics(text in "([a-z_\\[\\]]{1,12} ?= ?[\"'\\[{]?[0-9a-zA-Z:,.]{0,9}[\"'\\]}]?\n){0,4}|\\PC{0,60}") {
        let _ = plan(&text);
    }
}
