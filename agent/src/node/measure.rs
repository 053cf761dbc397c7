//! What a node does in a round: arms its ends, runs them at the agreed instant, journals and reports.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bench_core::cell::End;
use bench_core::ids::NodeIndex;
use bench_core::ids::{CellId, NodeId, RailId};
use bench_core::message::{
    CellEndpoint, CellTask, EndpointInfo, Prepare, PrepareReply, Prepared, Request, Response, RoundKey,
    Start, TaskId,
};
use bench_core::node::RailEndpoint;
use bench_core::plan::TestCase;
use bench_core::record::{Evidence, Failure, FailureKind, Observation, ObservationKey, Outcome, Phase};
use bench_core::time::{ClockOffset, Mono};
use bench_core::units::{BitsPerSecond, format_duration};
use tokio::task::JoinSet;

use super::Node;
use super::rounds::{ArmedEnd, Round};
use crate::supervise::Worker;

impl Node {
    /// Sets up this node's ends of a round and tells which could not be armed.
    ///
    /// Ends are set up at the same time; each ends by itself within the request's time-out.
    pub(super) async fn prepare(self: &Arc<Self>, request: Prepare) -> PrepareReply {
        let round = self.rounds.get_or_begin(request.key);
        let coordinator = NodeIndex(request.key.epoch.elector);
        let (clock, failed) = tokio::join!(self.offset_to(coordinator), self.arm_all(&round, &request));
        if let Some(clock) = clock {
            round.set_clock(clock);
        }
        PrepareReply { failed, clock }
    }

    /// Runs the armed ends that the start names, drops the others, and returns what was observed.
    pub(super) async fn start(self: &Arc<Self>, start: Start) -> Vec<Observation> {
        let Some(round) = self.rounds.take(start.key) else {
            return Vec::new();
        };
        let clock = round.clock().unwrap_or_default();
        let at = clock.to_local(start.at);
        self.log_start(&start, at);
        let mut running = JoinSet::new();
        for armed in round.armed() {
            let wanted = start.cells.contains(&armed.cell.id);
            let tail = start.tail;
            running.spawn(async move {
                if wanted {
                    let (outcome, evidence) = run_end(&armed, at, tail).await;
                    Some((armed, outcome, evidence))
                } else {
                    armed.worker.abort(armed.task).await;
                    None
                }
            });
        }
        let mut observations = Vec::new();
        while let Some(ended) = running.join_next().await {
            if let Ok(Some((armed, outcome, evidence))) = ended {
                observations.push(observation(start.key, &armed, outcome, evidence, clock));
            }
        }
        observations.sort_by_key(|o| o.key);
        if let Err(error) = self.journals.append(start.key.run, &observations) {
            tracing::error!(%error, "observations could not be written to the journal; they are reported only");
        }
        observations
    }

    /// The first round of each epoch is news (between the end of one epoch and this instant lies what its end cost), the
    /// others are detail.
    fn log_start(&self, start: &Start, at: Mono) {
        let (round, epoch, at_ns) = (start.key.round, start.key.epoch, at.as_nanos());
        let mut logged = self.first_start.lock().expect("nothing panics while the first start is held");
        if *logged < Some(epoch) {
            *logged = Some(epoch);
            tracing::info!(%round, %epoch, at_ns, "takes part in its first round of this epoch");
        } else {
            tracing::debug!(%round, %epoch, at_ns, "takes part in a round");
        }
    }

    /// Drops whatever is set up of a round.
    pub(super) async fn abort(&self, key: RoundKey) {
        if let Some(round) = self.rounds.take(key) {
            for armed in round.armed() {
                armed.worker.abort(armed.task).await;
            }
        }
    }

    async fn arm_all(self: &Arc<Self>, round: &Arc<Round>, request: &Prepare) -> Vec<(CellId, End, Failure)> {
        let rails = match self.rails.of(request.rails.as_deref()) {
            Ok(rails) => rails,
            Err(reason) => return none_armed(&request.ends, &reason),
        };
        let mut arming = JoinSet::new();
        let mut sources: BTreeMap<NodeId, Vec<Prepared>> = BTreeMap::new();
        for prepared in &request.ends {
            match prepared.end {
                End::Source => sources.entry(prepared.peer.clone()).or_default().push(prepared.clone()),
                End::Destination => {
                    let (node, round, prepared) = (Arc::clone(self), Arc::clone(round), prepared.clone());
                    let (timeout, rails) = (request.timeout, Arc::clone(&rails));
                    arming.spawn(async move {
                        let armed = node.arm_destination(&round, &prepared, &rails, timeout).await;
                        vec![(prepared, armed)]
                    });
                }
            }
        }
        for (peer, prepared) in sources {
            let (node, round, key, timeout) =
                (Arc::clone(self), Arc::clone(round), request.key, request.timeout);
            let rails = Arc::clone(&rails);
            arming.spawn(async move { node.arm_sources(&round, key, peer, prepared, rails, timeout).await });
        }
        let mut failed = Vec::new();
        while let Some(group) = arming.join_next().await {
            for (prepared, armed) in group.unwrap_or_default() {
                if let Err(failure) = armed {
                    failed.push((prepared.cell.id, prepared.end, failure));
                }
            }
        }
        failed
    }

    async fn arm_destination(
        &self,
        round: &Round,
        prepared: &Prepared,
        rails: &[RailEndpoint],
        timeout: Duration,
    ) -> Result<(), Failure> {
        let rail = prepared.cell.rail;
        let listening = self.listen(prepared, rails, timeout).await;
        round.publish(CellEndpoint {
            cell: prepared.cell.id,
            endpoint: listening.as_ref().map(|(_, _, endpoint)| endpoint.clone()).map_err(Failure::clone),
            pace: self.config.emulate.pace_of(rail),
        });
        let (worker, id, _) = listening?;
        worker.connect(id, None).await?;
        round.arm(ArmedEnd { cell: prepared.cell, end: prepared.end, case: prepared.case, task: id, worker });
        Ok(())
    }

    async fn listen(
        &self,
        prepared: &Prepared,
        rails: &[RailEndpoint],
        timeout: Duration,
    ) -> Result<(Worker, TaskId, EndpointInfo), Failure> {
        let (rail, worker) = self.worker_of(prepared.cell.rail, rails).await?;
        let task = self.task(prepared, rail, prepared.case, timeout);
        let id = task.id;
        let endpoint = worker.prepare(task).await?.ok_or_else(no_listener)?;
        Ok((worker, id, endpoint))
    }

    /// Arms the sources whose destinations are on one peer: one handshake for all of them.
    async fn arm_sources(
        self: &Arc<Self>,
        round: &Arc<Round>,
        key: RoundKey,
        peer: NodeId,
        prepared: Vec<Prepared>,
        rails: Arc<[RailEndpoint]>,
        timeout: Duration,
    ) -> Vec<(Prepared, Result<(), Failure>)> {
        let cells: Vec<CellId> = prepared.iter().map(|p| p.cell.id).collect();
        let mut endpoints = self.handshake(key, &peer, &cells, timeout).await;
        let mut arming = JoinSet::new();
        for prepared in prepared {
            let answer = endpoints.remove(&prepared.cell.id).unwrap_or_else(|| Err(not_told(&peer)));
            let (node, round, rails) = (Arc::clone(self), Arc::clone(round), Arc::clone(&rails));
            arming.spawn(async move {
                let armed = match answer {
                    Ok((endpoint, pace)) => {
                        node.arm_source(&round, &prepared, &rails, (endpoint, pace), timeout).await
                    }
                    Err(failure) => Err(failure),
                };
                (prepared, armed)
            });
        }
        arming.join_all().await
    }

    async fn arm_source(
        &self,
        round: &Round,
        prepared: &Prepared,
        rails: &[RailEndpoint],
        (endpoint, pace): (EndpointInfo, Option<BitsPerSecond>),
        timeout: Duration,
    ) -> Result<(), Failure> {
        let (rail, worker) = self.worker_of(prepared.cell.rail, rails).await?;
        let case = paced(paced(prepared.case, pace), self.config.emulate.pace_of(rail.rail));
        let task = self.task(prepared, rail, case, timeout);
        let id = task.id;
        worker.prepare(task).await?;
        worker.connect(id, Some(endpoint)).await?;
        round.arm(ArmedEnd { cell: prepared.cell, end: prepared.end, case: prepared.case, task: id, worker });
        Ok(())
    }

    /// Asks the peer where its ends of `cells` listen.
    async fn handshake(
        self: &Arc<Self>,
        key: RoundKey,
        peer: &NodeId,
        cells: &[CellId],
        timeout: Duration,
    ) -> BTreeMap<CellId, Result<(EndpointInfo, Option<BitsPerSecond>), Failure>> {
        let request = Request::Handshake { key, cells: cells.to_vec() };
        let failure = match self.call_peer(peer, request, timeout).await {
            Ok(Response::Handshake(reply)) => {
                let told = reply.endpoints.into_iter().map(|told| {
                    let about_peer = |failure: Failure| Failure {
                        phase: Phase::Handshake,
                        detail: format!("{peer} says: {}", failure.detail),
                        ..failure
                    };
                    (told.cell, told.endpoint.map(|endpoint| (endpoint, told.pace)).map_err(about_peer))
                });
                return told.collect();
            }
            Ok(_) => handshake_failure(
                FailureKind::Crash,
                format!("{peer} answered the handshake with something else"),
            ),
            Err(reason) => handshake_failure(
                FailureKind::Timeout,
                format!("{peer} did not answer the handshake: {reason}"),
            ),
        };
        cells.iter().map(|cell| (*cell, Err(failure.clone()))).collect()
    }

    async fn worker_of<'a>(
        &self,
        rail: RailId,
        rails: &'a [RailEndpoint],
    ) -> Result<(&'a RailEndpoint, Worker), Failure> {
        let endpoint = rails.get(rail.usize()).ok_or_else(|| Failure {
            kind: FailureKind::Unsupported,
            phase: Phase::Prepare,
            detail: format!("this node has no rail {rail}"),
            remedy: Some("name its rails with --rails".to_owned()),
        })?;
        Ok((endpoint, self.pool.worker(&self.placer.spec(endpoint)).await?))
    }

    fn task(&self, prepared: &Prepared, rail: &RailEndpoint, case: TestCase, timeout: Duration) -> CellTask {
        CellTask {
            id: self.next_task(),
            cell: prepared.cell.id,
            end: prepared.end,
            case,
            bind: rail.addr,
            device: rail.device.clone(),
            hca: rail.hca.clone(),
            connect_timeout: timeout,
        }
    }
}

/// What the plan takes as rails is not here any more: no end of the round can be set up.
fn none_armed(ends: &[Prepared], reason: &str) -> Vec<(CellId, End, Failure)> {
    let failure = Failure {
        kind: FailureKind::Unsupported,
        phase: Phase::Prepare,
        detail: reason.to_owned(),
        remedy: Some("correct rails_of in the plan".to_owned()),
    };
    ends.iter().map(|prepared| (prepared.cell.id, prepared.end, failure.clone())).collect()
}

async fn run_end(armed: &ArmedEnd, at: Mono, tail: Duration) -> (Outcome, Evidence) {
    let late = transport::clock::now().since(at);
    if late > armed.case.warmup.max(LEAST_LATENESS) {
        armed.worker.abort(armed.task).await;
        return (Outcome::Failed(came_late(late)), Evidence::default());
    }
    armed.worker.run(armed.task, at, tail).await
}

/// The case with its rate held at `pace`, if that is lower.
fn paced(case: TestCase, pace: Option<BitsPerSecond>) -> TestCase {
    let rate_limit = match (case.rate_limit, pace) {
        (Some(limit), Some(pace)) => Some(if pace < limit { pace } else { limit }),
        (limit, pace) => limit.or(pace),
    };
    TestCase { rate_limit, ..case }
}

fn observation(
    key: RoundKey,
    armed: &ArmedEnd,
    outcome: Outcome,
    evidence: Evidence,
    clock: ClockOffset,
) -> Observation {
    Observation {
        key: ObservationKey {
            run: key.run,
            cell: armed.cell.id,
            epoch: key.epoch,
            attempt: key.attempt,
            end: armed.end,
        },
        round: key.round,
        outcome,
        evidence,
        clock,
    }
}

fn came_late(late: Duration) -> Failure {
    Failure {
        kind: FailureKind::Late,
        phase: Phase::Armed,
        detail: format!("the start came {} after its instant", format_duration(late)),
        remedy: Some(
            "this node's processors are overloaded; see whether something else runs on it".to_owned(),
        ),
    }
}

fn handshake_failure(kind: FailureKind, detail: String) -> Failure {
    Failure { kind, phase: Phase::Handshake, detail, remedy: None }
}

fn not_told(peer: &NodeId) -> Failure {
    handshake_failure(FailureKind::Crash, format!("{peer} left the cell out of its handshake"))
}

fn no_listener() -> Failure {
    Failure {
        kind: FailureKind::Crash,
        phase: Phase::Prepare,
        detail: "the worker set up a destination without a listener".to_owned(),
        remedy: None,
    }
}

/// A start may come this late even where the case has no warm-up: within the first slice of the window.
const LEAST_LATENESS: Duration = Duration::from_millis(5);
