//! What a node does in a round: arms its ends, runs them at the agreed instant, journals and reports.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bench_core::cell::End;
use bench_core::ids::NodeIndex;
use bench_core::ids::{CellId, NodeId, RailId};
use bench_core::message::{
    CellEndpoint, CellTask, EndpointInfo, Peer, Prepare, PrepareReply, Prepared, Request, Response, RoundKey,
    Start, TaskId,
};
use bench_core::node::RailEndpoint;
use bench_core::plan::TestCase;
use bench_core::record::{Evidence, Failure, FailureKind, Observation, ObservationKey, Outcome, Phase};
use bench_core::time::{ClockOffset, Mono};
use bench_core::units::{BitsPerSecond, format_duration};
use tokio::task::JoinSet;

use super::Node;
use super::rounds::{ArmedEnd, Round, said_by};
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
        let end = self.set_up(prepared, rails, prepared.case, timeout).await;
        round.publish(end.told(self.config.emulate.pace_of(prepared.cell.rail)));
        let source = round.source_of(prepared.cell.id, &prepared.peer, timeout).await;
        end.arm(round, source).await
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
        let mut setting_up = JoinSet::new();
        for prepared in prepared {
            let (node, rails) = (Arc::clone(self), Arc::clone(&rails));
            setting_up.spawn(async move {
                let case = prepared.case.held_at(node.config.emulate.pace_of(prepared.cell.rail));
                node.set_up(&prepared, &rails, case, timeout).await
            });
        }
        let ends = setting_up.join_all().await;
        let sources = ends.iter().map(|end| end.told(None)).collect();
        let mut destinations = self.handshake(key, &peer, sources, timeout).await;
        let mut arming = JoinSet::new();
        for end in ends {
            let cell = end.prepared.cell.id;
            let destination = destinations.remove(&cell).unwrap_or_else(|| Err(not_told(&peer)));
            let round = Arc::clone(round);
            arming.spawn(async move { (end.prepared.clone(), end.arm(&round, destination).await) });
        }
        arming.join_all().await
    }

    /// Sets up one end, which arms later or is dropped.
    async fn set_up(
        &self,
        prepared: &Prepared,
        rails: &[RailEndpoint],
        case: TestCase,
        timeout: Duration,
    ) -> SetUpEnd {
        let state = async {
            let (rail, worker) = self.worker_of(prepared.cell.rail, rails).await?;
            let task = self.task(prepared, rail, case, timeout);
            let id = task.id;
            let endpoint = worker.prepare(task).await?;
            Ok((worker, id, endpoint))
        };
        SetUpEnd { prepared: prepared.clone(), state: state.await }
    }

    /// Tells the peer of this node's sources and asks what of its destinations of the same cells.
    async fn handshake(
        self: &Arc<Self>,
        key: RoundKey,
        peer: &NodeId,
        sources: Vec<CellEndpoint>,
        timeout: Duration,
    ) -> BTreeMap<CellId, Result<Peer, Failure>> {
        let cells: Vec<CellId> = sources.iter().map(|source| source.cell).collect();
        let failure = match self.call_peer(peer, Request::Handshake { key, sources }, timeout).await {
            Ok(Response::Handshake(reply)) => {
                let told = reply.destinations.into_iter();
                return told.map(|told| (told.cell, told.end.map_err(|f| said_by(peer, f)))).collect();
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

/// An end that is set up in a worker, or is not.
struct SetUpEnd {
    prepared: Prepared,
    state: Result<(Worker, TaskId, Option<EndpointInfo>), Failure>,
}

impl SetUpEnd {
    /// What the other end's node is told.
    fn told(&self, pace: Option<BitsPerSecond>) -> CellEndpoint {
        let end = match &self.state {
            Ok((_, _, endpoint)) => Ok(Peer { endpoint: endpoint.clone(), pace }),
            Err(failure) => Err(failure.clone()),
        };
        CellEndpoint { cell: self.prepared.cell.id, end }
    }

    /// Takes it on to armed; drops it where the other end is not there.
    async fn arm(&self, round: &Round, peer: Result<Peer, Failure>) -> Result<(), Failure> {
        let (worker, task, _) = self.state.as_ref().map_err(Failure::clone)?;
        match peer {
            Ok(peer) => worker.connect(*task, peer).await?,
            Err(failure) => {
                worker.abort(*task).await;
                return Err(failure);
            }
        }
        let Prepared { cell, end, case, .. } = self.prepared;
        round.arm(ArmedEnd { cell, end, case, task: *task, worker: worker.clone() });
        Ok(())
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

/// A start may come this late even where the case has no warm-up: within the first slice of the window.
const LEAST_LATENESS: Duration = Duration::from_millis(5);
