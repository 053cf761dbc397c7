//! `railmesh sweep`: submit a plan, show its progress and the report. Exit code = verdict.

use bench_core::plan::PlanSpec;
use tracing::level_filters::LevelFilter;

use crate::cli::args::SweepArgs;
use crate::cli::exit::{Exit, ExitError};
use crate::cli::following::{client_error, follow_to_end, open_folder, submit};
use crate::cli::{logging, plan_flags};
use crate::client::Client;
use crate::runtime;

pub(crate) fn run(args: &SweepArgs, verbose: u8) -> Result<Exit, ExitError> {
    logging::to_stderr(LevelFilter::WARN, verbose);
    let plan = plan_flags::plan_of(&args.plan, PlanSpec::default())?;
    let run = args.run_id.unwrap_or_else(runtime::random_run_id);
    runtime::block_on(async {
        let key = args.connect.key.as_deref();
        let mut client = Client::connect(&args.connect.connect, key).await.map_err(client_error)?;
        if args.detach {
            submit(&client, run, plan).await?;
            println!("{run}");
            eprintln!("the run goes on; follow it with `railmesh attach {run}`");
            client.close().await;
            return Ok(Exit::Pass);
        }
        let folder = open_folder(&args.output, run)?;
        submit(&client, run, plan).await?;
        let exit = follow_to_end(&mut client, Some(run), folder, args.output.json).await;
        client.close().await;
        exit
    })
}
