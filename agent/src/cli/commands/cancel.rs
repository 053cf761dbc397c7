//! `railmesh cancel`: stop a run; what was measured stays.

use std::time::Duration;

use anyhow::anyhow;
use bench_core::message::{Request, Response};
use tracing::level_filters::LevelFilter;

use crate::cli::args::CancelArgs;
use crate::cli::exit::{Exit, ExitError};
use crate::cli::following::client_error;
use crate::cli::logging;
use crate::client::Client;
use crate::runtime;

pub(crate) fn run(args: &CancelArgs, verbose: u8) -> Result<Exit, ExitError> {
    logging::to_stderr(LevelFilter::WARN, verbose);
    runtime::block_on(async {
        let key = args.connect.key.as_deref();
        let client = Client::connect(&args.connect.connect, key).await.map_err(client_error)?;
        let answer =
            client.call(&Request::Cancel { run: args.run }, CANCEL_TIMEOUT).await.map_err(client_error)?;
        client.close().await;
        match answer {
            Response::Done => Ok(Exit::Pass),
            Response::AlreadyOver { run, outcome } => {
                let none = if args.run.is_none() { "no run is on; the latest, " } else { "" };
                Err(ExitError::usage(anyhow!(
                    "{none}run {run} has already ended: {}; see `railmesh results {run}`",
                    outcome.words
                )))
            }
            _ => Err(ExitError::usage(match args.run {
                Some(run) => anyhow!("the mesh knows no run {run}: see `railmesh status`"),
                None => anyhow!("no run is on"),
            })),
        }
    })
}

/// How long the mesh may take to take note, or to judge a run of the largest kind that is over.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(100);
