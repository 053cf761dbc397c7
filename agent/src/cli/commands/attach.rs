//! `railmesh attach` and `railmesh results`: a run that somebody submitted, to its end or so far.

use tracing::level_filters::LevelFilter;

use crate::cli::args::AttachArgs;
use crate::cli::exit::{Exit, ExitError};
use crate::cli::following;
use crate::cli::logging;
use crate::client::{Client, RunSink, follow};
use crate::runtime;

/// Follows to the end; the exit code is the verdict's. Ctrl-C leaves the run alone: it is somebody else's.
pub(crate) fn attach(args: &AttachArgs, verbose: u8) -> Result<Exit, ExitError> {
    fetch(args, verbose, true)
}

/// Fetches what there is.
pub(crate) fn results(args: &AttachArgs, verbose: u8) -> Result<Exit, ExitError> {
    fetch(args, verbose, false)
}

fn fetch(args: &AttachArgs, verbose: u8, wait: bool) -> Result<Exit, ExitError> {
    logging::to_stderr(LevelFilter::WARN, verbose);
    runtime::block_on(async {
        let key = args.connect.key.as_deref();
        let mut client =
            Client::connect(&args.connect.connect, key).await.map_err(following::client_error)?;
        let folder = match (&args.output.out, args.run) {
            (Some(_), run) => {
                Some(following::open_folder(&args.output, run.unwrap_or_else(runtime::random_run_id))?)
            }
            (None, _) => None,
        };
        let mut sink = RunSink::new(folder);
        let ended = tokio::select! {
            ended = follow(&mut client, args.run, wait, &mut sink) => ended,
            () = runtime::interrupted() => Ok(crate::client::Followed::SoFar),
        };
        let exit = following::conclude(sink, ended, args.output.json);
        client.close().await;
        exit
    })
}
