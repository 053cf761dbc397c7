//! The transition table of a one-shot agent, row by row.

use super::*;

const PATIENCE: Duration = Duration::from_secs(45);

fn id(name: &str) -> NodeId {
    NodeId::new(name).expect("a name")
}

fn at(seconds: u64) -> Mono {
    Mono::from_nanos(seconds * 1_000_000_000)
}

fn agent() -> OneShot {
    OneShot::new(id("n2"), PATIENCE, at(0))
}

fn outcome() -> Outcome {
    Outcome { exit_code: 1, words: "fail".to_owned() }
}

fn over(printer: Option<&str>, printed_by: Option<&str>, company: Company) -> AttendReply {
    AttendReply::Over {
        outcome: outcome(),
        printer: printer.map(id),
        printed_by: printed_by.map(id),
        company,
    }
}

fn ends_over(step: &Step, by: Option<&str>) -> bool {
    *step == Step::End(Ending::Over { outcome: outcome(), printed_by: by.map(id) })
}

#[test]
fn it_attends_while_others_gather_and_play_and_shows_the_run_where_it_prints() {
    let mut agent = agent();
    assert_eq!(agent.next(at(0)), Step::Ask(Attending::Present));
    agent.hear(AttendReply::Gathering { missing: vec![id("n3")] }, Part::Member, at(1));
    assert_eq!(agent.showing(), Showing::Not);
    agent.hear(AttendReply::Playing { printer: Some(id("n2")) }, Part::Member, at(2));
    assert_eq!(agent.showing(), Showing::Live);
    agent.hear(AttendReply::Playing { printer: Some(id("n1")) }, Part::Member, at(3));
    assert_eq!(agent.showing(), Showing::Not);
    agent.hear(over(None, None, Company::Uninformed), Part::Member, at(4));
    assert_eq!(agent.next(at(4)), Step::Ask(Attending::Present), "nobody is known to print");
}

#[test]
fn a_member_that_does_not_print_leaves_when_its_word_was_heard() {
    let mut agent = agent();
    agent.hear(over(Some("n1"), None, Company::Uninformed), Part::Member, at(1));
    assert_eq!(agent.next(at(1)), Step::Ask(Attending::Done));
    assert!(agent.over().is_some());
    agent.hear(over(Some("n1"), None, Company::Uninformed), Part::Member, at(2));
    assert!(ends_over(&agent.next(at(2)), Some("n1")));
}

#[test]
fn an_elector_lingers_until_all_are_done_and_the_report_is_printed() {
    let mut agent = agent();
    for (printed_by, company) in
        [(None, Company::Uninformed), (None, Company::Leaving), (Some("n1"), Company::Uninformed)]
    {
        agent.hear(over(Some("n1"), printed_by, company), Part::Elector, at(1));
        assert_eq!(agent.next(at(1)), Step::Ask(Attending::Done), "{printed_by:?} {company:?}");
    }
    agent.hear(over(Some("n3"), Some("n1"), Company::Leaving), Part::Elector, at(2));
    assert!(ends_over(&agent.next(at(2)), Some("n1")));
}

#[test]
fn the_coordinator_lingers_until_the_others_are_gone() {
    let mut agent = agent();
    for _ in 0..3 {
        agent.hear(over(Some("n1"), Some("n1"), Company::Leaving), Part::Coordinator, at(1));
        assert_eq!(agent.next(at(1)), Step::Ask(Attending::Done));
    }
    agent.hear(over(Some("n2"), Some("n1"), Company::Nobody), Part::Coordinator, at(2));
    assert!(ends_over(&agent.next(at(2)), Some("n1")));
}

#[test]
fn the_printer_prints_once_and_then_leaves() {
    let mut agent = agent();
    agent.hear(over(Some("n2"), None, Company::Uninformed), Part::Coordinator, at(1));
    assert_eq!(agent.next(at(1)), Step::Print);
    assert_eq!((agent.showing(), agent.over()), (Showing::ToTheEnd, None));
    agent.printed(at(2));
    assert_eq!(agent.printed_by(), Some(&id("n2")));
    // A new coordinator that has not heard of it yet.
    agent.hear(over(Some("n2"), None, Company::Nobody), Part::Coordinator, at(3));
    assert!(ends_over(&agent.next(at(3)), Some("n2")));
}

#[test]
fn an_elector_prints_after_all_when_the_printer_is_gone_without_a_word() {
    let mut agent = agent();
    agent.hear(over(Some("n1"), None, Company::Uninformed), Part::Elector, at(1));
    assert_eq!(agent.next(at(1)), Step::Ask(Attending::Done));
    agent.hear(over(Some("n2"), None, Company::Leaving), Part::Elector, at(2));
    assert_eq!(agent.next(at(2)), Step::Print);
}

#[test]
fn a_refusal_is_acknowledged_and_ends_it() {
    let mut agent = agent();
    let refused = |company| AttendReply::Refused { reason: "n3 has another plan".to_owned(), company };
    agent.hear(refused(Company::Uninformed), Part::Coordinator, at(1));
    assert_eq!(agent.next(at(1)), Step::Ask(Attending::Done));
    assert!(agent.over().is_none(), "there is nothing to remember");
    agent.hear(refused(Company::Nobody), Part::Coordinator, at(2));
    assert_eq!(agent.next(at(2)), Step::End(Ending::Refused { reason: "n3 has another plan".to_owned() }));
}

#[test]
fn without_a_coordinator_it_ends_when_its_patience_is_over() {
    let mut agent = agent();
    agent.hear_nothing("n1 does not answer".to_owned(), at(44));
    assert_eq!(agent.next(at(44)), Step::Ask(Attending::Present));
    agent.hear(AttendReply::Playing { printer: None }, Part::Member, at(45));
    agent.hear_nothing("n1 does not answer".to_owned(), at(89));
    assert_eq!(agent.next(at(89)), Step::Ask(Attending::Present), "counted from the last answer");
    agent.hear_nothing("n1 does not answer".to_owned(), at(90));
    assert_eq!(agent.next(at(90)), Step::End(Ending::Alone { reason: "n1 does not answer".to_owned() }));
}

#[test]
fn lingering_has_a_bound_with_a_coordinator_and_without() {
    let leaving = || {
        let mut agent = agent();
        agent.hear(over(Some("n1"), None, Company::Uninformed), Part::Elector, at(100));
        agent
    };
    let mut silent = leaving();
    silent.hear_nothing("nobody".to_owned(), at(114));
    assert_eq!(silent.next(at(114)), Step::Ask(Attending::Done));
    silent.hear_nothing("nobody".to_owned(), at(115));
    assert!(ends_over(&silent.next(at(115)), Some("n1")));
    let mut heard = leaving();
    heard.hear(over(Some("n1"), None, Company::Uninformed), Part::Elector, at(159));
    assert_eq!(heard.next(at(159)), Step::Ask(Attending::Done));
    assert!(ends_over(&heard.next(at(160)), Some("n1")));
}

#[test]
fn a_process_that_is_told_to_stop_keeps_the_verdict_that_it_knows() {
    let mut early = agent();
    early.interrupt();
    assert!(matches!(early.next(at(1)), Step::End(Ending::Alone { .. })));
    let mut late = agent();
    late.hear(over(Some("n1"), None, Company::Uninformed), Part::Elector, at(1));
    late.interrupt();
    assert!(ends_over(&late.next(at(1)), Some("n1")));
}
