//! One-shot agents on the coordinator's side, and the way of an agent to it.

use std::sync::Arc;

use bench_core::ids::{NodeIndex, RunId};
use bench_core::message::{Attend, AttendReply, Outcome, Request, Response, WatchReply};
use bench_core::record::RunRecord;
use bench_core::report::RunReport;
use coordinator::{Attendance, Event};

use super::command_post::CommandPost;
use super::{Agent, Node};
use crate::inventory::wall_seconds;

impl Agent {
    /// Tells the coordinator that this agent is here for a run, and hears how far that is.
    ///
    /// # Errors
    /// A sentence that says why there is no coordinator, with the remedy.
    pub async fn attend(&self, attend: Attend) -> Result<AttendReply, String> {
        match self.node.forward(Request::Attend(Box::new(attend))).await {
            Response::Attended(reply) => Ok(*reply),
            Response::NoCoordinator { reason } | Response::Invalid { reason } => Err(reason),
            _ => Err("the coordinator answered with something else".to_owned()),
        }
    }
}

impl Node {
    /// Takes note of an agent and tells it how far its run is; holds the answer back while it would be the same.
    pub(super) async fn answer_attend(&self, post: &CommandPost, attend: Attend) -> Response {
        let Attend { node, run, plan, attending, printed_by, last, wait } = attend;
        let Some(index) = self.roster.index_of(&node) else {
            return Response::Invalid { reason: format!("{node} is not in the roster") };
        };
        let printed_by = printed_by.and_then(|name| self.roster.index_of(&name));
        let wall_seconds = wall_seconds();
        let mut news = post.news();
        post.feed(Event::Attended { node: index, run, plan, attending, printed_by, wall_seconds });
        let limit = tokio::time::Instant::now() + wait.min(super::command_post::LONGEST_WATCH);
        loop {
            news.mark_unchanged();
            let Some(attendance) = post.attendance(index, run) else {
                return Response::NoCoordinator {
                    reason: format!("{} does not command any more", self.name()),
                };
            };
            let reply = self.told(post, run, attendance).await;
            let is_news = last.as_ref().is_none_or(|last| !reply.calls_for_the_same_as(last));
            if is_news || tokio::time::timeout_at(limit, news.changed()).await.is_err() {
                return Response::Attended(Box::new(reply));
            }
        }
    }

    async fn told(&self, post: &CommandPost, run: RunId, attendance: Attendance) -> AttendReply {
        let name = |node: NodeIndex| self.roster.peers[node.usize()].node.clone();
        match attendance {
            Attendance::Gathering { missing } => {
                AttendReply::Gathering { missing: missing.into_iter().take(NAMED).map(name).collect() }
            }
            Attendance::Playing { printer } => AttendReply::Playing { printer: printer.map(name) },
            Attendance::Over { printer, printed_by, company } => AttendReply::Over {
                outcome: self.outcome(post, run).await,
                printer: printer.map(name),
                printed_by: printed_by.map(name),
                company,
            },
            Attendance::Refused { reason, company } => AttendReply::Refused { reason, company },
        }
    }

    /// How a run that is over has ended: judged once, in a thread of its own, since a large run takes long.
    pub(super) async fn outcome(&self, post: &CommandPost, run: RunId) -> Outcome {
        let mut judged = self.outcome.lock().await;
        match &*judged {
            Some((known, outcome)) if *known == run => return outcome.clone(),
            Some(_) | None => {}
        }
        let records = match post.records_of_ended(run) {
            Some(records) => records,
            None => self.kept_records(run).await,
        };
        if records.is_empty() {
            return Outcome { exit_code: UNKNOWN_EXIT, words: LOST_RESULT.to_owned() };
        }
        let judging = tokio::task::spawn_blocking(move || judge(&records));
        let outcome = judging.await.unwrap_or_else(|error| Outcome {
            exit_code: UNKNOWN_EXIT,
            words: format!("the run ended, and judging it failed: {error}"),
        });
        *judged = Some((run, outcome.clone()));
        outcome
    }

    /// Records of a run's result that this node has kept, or another elector; `None` if nobody here has.
    pub(super) async fn kept(&self, run: RunId, from: u64) -> Option<WatchReply> {
        if let Some(reply) = self.results.read(run, from) {
            return Some(reply);
        }
        for elector in self.roster.electors.iter().filter(|elector| **elector != self.me) {
            let name = &self.roster.peers[elector.usize()].node;
            let Some(connection) = self.network().mesh.connected_to(name) else {
                continue;
            };
            if let Ok(Response::Records(reply)) =
                connection.call(&Request::Kept { run, from }, KEPT_LIMIT).await
            {
                return Some(reply);
            }
        }
        None
    }

    async fn kept_records(&self, run: RunId) -> Vec<RunRecord> {
        let mut records = Vec::new();
        loop {
            match self.kept(run, records.len() as u64).await {
                Some(reply) if !reply.records.is_empty() => records.extend(reply.records),
                // The end, or the elector that had begun to tell is gone and the others have none.
                Some(_) | None => return records,
            }
            if let Some(RunRecord::Ended(_)) = records.last() {
                return records;
            }
        }
    }

    /// Answers an agent's question for what this elector has kept.
    pub(super) fn serve_kept(&self, run: RunId, from: u64) -> Response {
        match self.results.read(run, from) {
            Some(reply) => Response::Records(reply),
            None => Response::UnknownRun { run: Some(run) },
        }
    }

    /// Records for a client: of the coordinator, else what electors have kept of a run that an earlier one ended.
    pub(super) async fn watch(
        self: &Arc<Self>,
        post: &CommandPost,
        run: Option<RunId>,
        from: u64,
        wait: std::time::Duration,
    ) -> Response {
        match post.watch(run, from, wait).await {
            Response::UnknownRun { .. } => {
                let kept = match run.or_else(|| post.last_ended()) {
                    Some(run) => self.kept(run, from).await,
                    None => None,
                };
                kept.map_or(Response::UnknownRun { run }, Response::Records)
            }
            response => response,
        }
    }
}

fn judge(records: &[RunRecord]) -> Outcome {
    match RunReport::from_records(records) {
        Ok(report) => {
            let reason = report.reasons.first().map_or_else(String::new, |reason| format!(": {reason}"));
            Outcome { exit_code: report.verdict.exit_code(), words: format!("{}{reason}", report.verdict) }
        }
        Err(error) => Outcome { exit_code: UNKNOWN_EXIT, words: error.to_string() },
    }
}

/// Missing nodes that a waiting agent is told.
const NAMED: usize = 8;

/// The exit code of a run that cannot be judged.
const UNKNOWN_EXIT: u8 = 3;

/// Nobody has the records.
const LOST_RESULT: &str = "the run ended earlier, and no elector that is here has its result any more; \
to measure again, start every node with another --job";

/// How long an elector may take to send a batch: 16 MiB over 1 Gb/s on a busy machine.
const KEPT_LIMIT: std::time::Duration = std::time::Duration::from_secs(5);
