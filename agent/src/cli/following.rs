//! What the commands share that submit or follow a run: from the submission to the exit code.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use bench_core::ids::RunId;
use bench_core::message::{Request, Response, SubmitReply};
use bench_core::plan::Plan;
use bench_core::report::{RunReport, text};

use super::args::OutputArgs;
use super::exit::{Exit, ExitError};
use crate::client::{Client, ClientError, FollowError, Followed, RunSink, follow};
use crate::output::RunFolder;
use crate::runtime;

/// Submits a plan, again while the electors elect; a busy mesh and a plan that does not fit are usage errors.
pub(crate) async fn submit(client: &Client, run: RunId, plan: Plan) -> Result<(), ExitError> {
    let request = Request::Submit { run, plan: Box::new(plan) };
    let patience = tokio::time::Instant::now() + ELECTION_PATIENCE;
    loop {
        let undecided = match client.call(&request, SUBMIT_TIMEOUT).await {
            Ok(Response::Submitted(SubmitReply::Undecided { reason })) => ExitError::not_measured(anyhow!(
                "the electors did not decide: {reason}; submit the same run once more with --run-id {run}"
            )),
            Err(error @ ClientError::NoCoordinator { .. }) => client_error(error),
            Ok(response) => return submitted(response),
            Err(error) => return Err(client_error(error)),
        };
        if tokio::time::Instant::now() >= patience {
            return Err(undecided);
        }
        tokio::time::sleep(ELECTION_PAUSE).await;
    }
}

fn submitted(response: Response) -> Result<(), ExitError> {
    match response {
        Response::Submitted(SubmitReply::Accepted) => Ok(()),
        Response::Submitted(SubmitReply::Busy { run }) => Err(ExitError::usage(anyhow!(
            "run {run} is on: follow it with `railmesh attach {run}` or stop it with `railmesh cancel {run}`"
        ))),
        Response::Submitted(SubmitReply::Rejected { reason }) => {
            Err(ExitError::usage(anyhow!("the plan was rejected: {reason}")))
        }
        _ => Err(ExitError::not_measured(anyhow!("the agent answered the submission with something else"))),
    }
}

/// Makes the run folder: `--out`, or `railmesh-runs/RUN`.
pub(crate) fn open_folder(output: &OutputArgs, run: RunId) -> Result<RunFolder, ExitError> {
    let path = output.out.clone().unwrap_or_else(|| PathBuf::from("railmesh-runs").join(run.to_string()));
    RunFolder::create(path).map_err(ExitError::usage)
}

/// Follows a run to its end, prints the report and gives the verdict's exit code. Ctrl-C asks the mesh to cancel.
pub(crate) async fn follow_to_end(
    client: &mut Client,
    run: Option<RunId>,
    folder: RunFolder,
    json: bool,
) -> Result<Exit, ExitError> {
    let mut sink = RunSink::new(Some(folder));
    let mut interrupt = std::pin::pin!(runtime::interrupted());
    let ended = tokio::select! {
        ended = follow(client, run, true, &mut sink) => Some(ended),
        () = &mut interrupt => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            eprintln!("cancelling the run; once more to leave it at once");
            client.call(&Request::Cancel { run }, SUBMIT_TIMEOUT).await.map_err(client_error)?;
            tokio::select! {
                ended = follow(client, run, true, &mut sink) => ended,
                () = runtime::interrupted() => Ok(Followed::SoFar),
            }
        }
    };
    conclude(sink, ended, json)
}

/// Prints the report of what is here and gives the exit code.
pub(crate) fn conclude(
    mut sink: RunSink,
    ended: Result<Followed, FollowError>,
    json: bool,
) -> Result<Exit, ExitError> {
    let written = sink.finish();
    let report = match (sink.report(), ended) {
        (Ok(report), Ok(_)) => report,
        (Ok(report), Err(error)) => {
            eprintln!("error: {error}");
            report
        }
        (Err(_), Err(error)) => return Err(ExitError::not_measured(error)),
        (Err(error), Ok(_)) => return Err(ExitError::not_measured(error)),
    };
    print_report(&report, json);
    // What could not be written is on stdout at least.
    written.map_err(ExitError::not_measured)?;
    if let Some(folder) = sink.folder() {
        eprintln!("run folder: {}", folder.path().display());
    }
    Ok(exit_of(&report))
}

fn print_report(report: &RunReport, json: bool) {
    if json {
        print!("{}", report.to_json());
    } else {
        print!("{}", text::render(report));
    }
}

/// The exit code of a verdict.
pub(crate) fn exit_of(report: &RunReport) -> Exit {
    match report.verdict.exit_code() {
        0 => Exit::Pass,
        1 => Exit::Fail,
        _ => Exit::NotMeasured,
    }
}

/// A client's failure as an exit code: what the user typed is 2, an unreachable mesh is 3.
pub(crate) fn client_error(error: ClientError) -> ExitError {
    match error {
        ClientError::Target { .. } | ClientError::Key(_) | ClientError::Control(_) => ExitError::usage(error),
        ClientError::Resolve(_)
        | ClientError::Dial { .. }
        | ClientError::Call { .. }
        | ClientError::NoCoordinator { .. }
        | ClientError::Refused { .. } => ExitError::not_measured(error),
    }
}

/// How long the electors may take to decide on a submission or cancellation.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a submission waits for the electors: a few elections on a busy machine. The run id makes it safe to ask again.
const ELECTION_PATIENCE: Duration = Duration::from_secs(15);

/// Pause between two submissions of the same run.
const ELECTION_PAUSE: Duration = Duration::from_millis(200);
