//! Taking an elector in that has lost its state: its new id replaces its old one among the voters.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use openraft::{EmptyNode, Raft, ServerState};

use super::types::{ElectorId, TypeConfig};
use super::wire::{Answer, Ask, Wire, encode};
use super::{LOOK_EVERY, Running};

/// Asks whoever commands to be taken in until this elector votes; returns at once if it does.
pub(super) async fn ask_until_admitted(running: Running, wire: Arc<dyn Wire>) {
    let me = running.identity.id;
    if me.incarnation == 0 {
        return;
    }
    let mut last = String::new();
    while !votes(&running.raft, me) {
        let around = wire.look_around().await;
        let commander = around.electors.values().filter_map(|view| view.commander).max();
        let reason = match commander {
            None => "nobody commands: a majority of the other electors is needed".to_owned(),
            Some(epoch) => {
                let to = bench_core::ids::NodeIndex(epoch.elector);
                match wire.call(to, encode(&Ask::Admit { id: me }), ADMIT_TIMEOUT).await {
                    Ok(bytes) => match postcard::from_bytes(&bytes) {
                        Ok(Answer::Admitted) => {
                            tracing::info!(id = %me, "this elector is taken in and votes from now on");
                            return;
                        }
                        Ok(Answer::Declined { reason }) => reason,
                        Ok(_) | Err(_) => "an answer to another question".to_owned(),
                    },
                    Err(fault) => fault.to_string(),
                }
            }
        };
        if reason != last {
            tracing::warn!(id = %me, %reason, "this elector is mute: it is not taken in yet");
            last = reason;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Puts `id` in the place of that elector's old id. Only a leader can.
///
/// # Errors
/// A sentence that says what prevents it; another try may succeed.
pub(super) async fn admit(raft: &Raft<TypeConfig>, id: ElectorId) -> Result<(), String> {
    if raft.metrics().borrow().state != ServerState::Leader {
        return Err("the asked elector does not command".to_owned());
    }
    if votes(raft, id) {
        return Ok(());
    }
    let change = async {
        raft.add_learner(id, EmptyNode {}, true).await.map_err(|error| error.to_string())?;
        let voters: BTreeSet<ElectorId> = raft
            .metrics()
            .borrow()
            .membership_config
            .membership()
            .voter_ids()
            .filter(|voter| voter.elector != id.elector)
            .chain([id])
            .collect();
        tracing::warn!(%id, "an elector lost its state and is replaced by its new id");
        raft.change_membership(voters, false).await.map_err(|error| error.to_string())?;
        Ok(())
    };
    match tokio::time::timeout(ADMIT_TIMEOUT, change).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("{id} was not taken in within {ADMIT_TIMEOUT:?}")),
    }
}

fn votes(raft: &Raft<TypeConfig>, id: ElectorId) -> bool {
    let metrics = raft.metrics();
    let metrics = metrics.borrow();
    metrics.membership_config.membership().voter_ids().any(|voter| voter == id)
}

/// How long taking in may take: a snapshot, the log and two decisions.
const ADMIT_TIMEOUT: Duration = Duration::from_secs(5);
