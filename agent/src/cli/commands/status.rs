//! `railmesh status`: members, coordinator, epoch, run, and whom the run waits for.

use std::time::Duration;

use anyhow::anyhow;
use bench_core::message::{Request, Response, StatusReply};
use tracing::level_filters::LevelFilter;

use crate::cli::args::ConnectArgs;
use crate::cli::exit::{Exit, ExitError};
use crate::cli::following::client_error;
use crate::cli::logging;
use crate::client::Client;
use crate::runtime;

pub(crate) fn run(args: &ConnectArgs, verbose: u8) -> Result<Exit, ExitError> {
    logging::to_stderr(LevelFilter::WARN, verbose);
    runtime::block_on(async {
        let client = Client::connect(&args.connect, args.key.as_deref()).await.map_err(client_error)?;
        let answer = client.call(&Request::Status, STATUS_TIMEOUT).await.map_err(client_error)?;
        client.close().await;
        match answer {
            Response::Status(status) => {
                print!("{}", draw(&status));
                Ok(exit_of(&status))
            }
            _ => Err(ExitError::not_measured(anyhow!(
                "the agent answered with something else than its status"
            ))),
        }
    })
}

/// 0 if the mesh can measure, 3 if it has no coordinator.
fn exit_of(status: &StatusReply) -> Exit {
    match status.coordinator {
        Some(_) => Exit::Pass,
        None => Exit::NotMeasured,
    }
}

fn draw(status: &StatusReply) -> String {
    let present = status.members.iter().filter(|member| member.absent.is_none()).count();
    let mut lines = vec![
        format!("answered by   {}", status.answered_by),
        match &status.coordinator {
            Some((node, epoch)) => format!("coordinator   {node}, epoch {epoch}"),
            None => format!("coordinator   none: {}", status.lack.as_deref().unwrap_or("not known why")),
        },
        format!("members       {present} of {}", status.members.len()),
    ];
    let width = status.members.iter().map(|member| member.node.as_str().len()).max().unwrap_or(0);
    for member in &status.members {
        let state =
            member.absent.as_deref().map_or_else(|| "present".to_owned(), |why| format!("absent: {why}"));
        lines.push(format!("  {:width$}  {}  {state}", member.node, member.address));
    }
    match &status.run {
        None => lines.push("run           none".to_owned()),
        Some(run) => {
            lines.push(format!(
                "run           {}, phase {}, {} of {} rounds over",
                run.run, run.phase, run.rounds_done, run.rounds_total
            ));
            lines.extend(run.waiting_for.iter().map(|(node, what)| format!("  waits for {node}: {what}")));
        }
    }
    lines.join("\n") + "\n"
}

/// How long an agent may take to answer.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use bench_core::ids::{Epoch, NodeId, RunId};
    use bench_core::message::{MemberStatus, RunStatus};

    #[test]
    fn status_names_whom_the_run_waits_for_and_who_is_absent() {
        let id = |name: &str| NodeId::new(name).expect("a name");
        let member = |name: &str, absent: Option<&str>| MemberStatus {
            node: id(name),
            address: "10.0.0.1:7777".to_owned(),
            absent: absent.map(str::to_owned),
        };
        let status = StatusReply {
            answered_by: id("n2"),
            coordinator: Some((id("n1"), Epoch { term: 3, elector: 0 })),
            lack: None,
            members: vec![member("n1", None), member("n2", Some("has not joined"))],
            run: Some(RunStatus {
                run: RunId([7; 16]),
                phase: "measure".to_owned(),
                rounds_done: 2,
                rounds_total: 12,
                waiting_for: vec![(id("n1"), "round 2 to be over".to_owned())],
                ended: false,
            }),
        };
        let text = draw(&status);
        for part in [
            "epoch 3.0",
            "1 of 2",
            "n2  10.0.0.1:7777  absent: has not joined",
            "2 of 12",
            "waits for n1: round 2 to be over",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
