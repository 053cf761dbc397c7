//! The transition table of the muster, row by row.

use super::*;
use bench_core::ids::BootId;
use bench_core::plan::PlanSpec;

const RUN: RunId = RunId([1; 16]);
const OTHER: RunId = RunId([2; 16]);
const N1: NodeIndex = NodeIndex(0);
const N2: NodeIndex = NodeIndex(1);
const N3: NodeIndex = NodeIndex(2);

fn roster() -> Vec<NodeId> {
    ["n1", "n2", "n3"].map(|name| NodeId::new(name).expect("a name")).to_vec()
}

fn members(present: &[NodeIndex]) -> Members {
    let mut members = Members::none_of(3);
    present.iter().for_each(|node| members.join(*node, BootId([0; 16])));
    members
}

fn comer(node: NodeIndex, run: RunId, plan: &str) -> Comer {
    let plan = PlanSpec::from_toml(plan).expect("a plan").validate().expect("a valid plan");
    Comer { node, run, plan: Box::new(plan), wall_seconds: 5 }
}

/// A muster to which these have come, each meaning `RUN`.
fn come(nodes: &[NodeIndex]) -> Muster {
    let mut muster = Muster::default();
    nodes.iter().for_each(|node| muster.come(comer(*node, RUN, ""), Known::Not, &roster()));
    muster
}

fn told(muster: &Muster, node: NodeIndex, known: Known) -> Attendance {
    muster.attendance(node, known, false, &members(&[N1, N2, N3]), &roster())
}

fn refusal(attendance: &Attendance) -> &str {
    match attendance {
        Attendance::Refused { reason, .. } => reason,
        other => panic!("refused, not {other:?}"),
    }
}

#[test]
fn gathering_goes_on_until_the_last_one_has_come() {
    let mut muster = come(&[N1, N3]);
    assert_eq!(told(&muster, N1, Known::Not), Attendance::Gathering { missing: vec![N2] });
    muster.come(comer(N3, RUN, ""), Known::Not, &roster());
    assert!(muster.agreed().is_none(), "one agent twice is one agent");
    muster.come(comer(N2, RUN, ""), Known::Not, &roster());
    assert_eq!(muster.agreed().map(|agreed| (agreed.run, agreed.wall_seconds)), Some((RUN, 5)));
    assert_eq!(told(&muster, N1, Known::Not), Attendance::Playing { printer: Some(N1) });
}

#[test]
fn the_join_timeout_closes_a_muster_to_which_somebody_has_come() {
    let mut nobody = Muster::default();
    assert!(!nobody.is_open());
    nobody.close();
    assert!(nobody.agreed().is_none());
    let mut muster = come(&[N2]);
    assert!(muster.is_open());
    muster.close();
    assert_eq!(muster.agreed().map(|agreed| agreed.run), Some(RUN));
    assert!(!muster.is_open());
}

#[test]
fn who_leaves_while_the_others_gather_has_not_come() {
    let mut muster = come(&[N1, N2]);
    muster.left(N2);
    muster.come(comer(N3, RUN, ""), Known::Not, &roster());
    assert_eq!(told(&muster, N1, Known::Not), Attendance::Gathering { missing: vec![N2] });
    let mut alone = come(&[N1]);
    alone.left(N1);
    assert!(!alone.is_open());
}

#[test]
fn a_run_that_is_on_or_over_needs_no_gathering() {
    for (known, expected) in [
        (Known::On, Attendance::Playing { printer: None }),
        (Known::Over, Attendance::Over { printer: None, printed_by: None, company: Company::Uninformed }),
    ] {
        let mut muster = Muster::default();
        muster.come(comer(N2, RUN, ""), known, &roster());
        assert!(muster.agreed().is_some());
        assert_eq!(told(&muster, N2, known), expected, "n1 is here and may still come: it would print");
    }
}

#[test]
fn two_plans_are_refused_to_everybody_with_both_names() {
    let mut muster = come(&[N1, N2]);
    muster.come(comer(N3, OTHER, "seed = 1"), Known::Not, &roster());
    for node in [N1, N2, N3] {
        let told = told(&muster, node, Known::Not);
        let reason = refusal(&told);
        assert!(reason.contains("n3 has another plan") && reason.contains("n1"), "{reason}");
    }
    muster.come(comer(N3, RUN, ""), Known::Not, &roster());
    refusal(&told(&muster, N1, Known::Not));
    assert!(muster.agreed().is_none());
}

#[test]
fn the_same_plan_of_another_job_is_refused_as_such() {
    let mut muster = come(&[N1]);
    muster.come(comer(N2, OTHER, ""), Known::Not, &roster());
    let told = told(&muster, N1, Known::Not);
    assert!(refusal(&told).contains("--job"), "{told:?}");
}

#[test]
fn who_comes_late_with_another_plan_is_refused_alone() {
    let mut muster = come(&[N1, N2]);
    muster.close();
    muster.come(comer(N3, OTHER, "seed = 1"), Known::Not, &roster());
    let late = told(&muster, N3, Known::Not);
    assert!(refusal(&late).contains("n3 has another plan"), "{late:?}");
    assert_eq!(told(&muster, N1, Known::On), Attendance::Playing { printer: Some(N1) });
}

#[test]
fn the_first_node_that_is_here_prints_and_what_was_printed_is_known() {
    let mut muster = come(&[N2, N3]);
    muster.close();
    let here = members(&[N1, N2, N3]);
    let printer =
        |muster: &Muster, settled| match muster.attendance(N3, Known::Over, settled, &here, &roster()) {
            Attendance::Over { printer, printed_by, .. } => (printer, printed_by),
            other => panic!("over, not {other:?}"),
        };
    assert_eq!(printer(&muster, false), (None, None), "n1 is here and may still come");
    assert_eq!(printer(&muster, true), (Some(N2), None), "n1 is an agent of another kind");
    muster.printed(N2);
    muster.printed(N3);
    assert_eq!(printer(&muster, true), (Some(N2), Some(N2)), "the first word holds");
}

#[test]
fn company_is_uninformed_until_all_others_are_done_and_nobody_when_they_have_left() {
    let company = |muster: &Muster, present: &[NodeIndex]| match muster.attendance(
        N1,
        Known::Over,
        true,
        &members(present),
        &roster(),
    ) {
        Attendance::Over { company, .. } => company,
        other => panic!("over, not {other:?}"),
    };
    let mut muster = come(&[N1, N2, N3]);
    muster.done(N2);
    assert_eq!(company(&muster, &[N1, N2, N3]), Company::Uninformed);
    muster.done(N3);
    assert_eq!(company(&muster, &[N1, N2, N3]), Company::Leaving);
    // A process that was started again knows nothing.
    muster.left(N3);
    muster.come(comer(N3, RUN, ""), Known::Over, &roster());
    assert_eq!(company(&muster, &[N1, N2, N3]), Company::Uninformed);
    assert_eq!(company(&muster, &[N1]), Company::Nobody);
}
