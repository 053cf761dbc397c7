//! The command line: typed arguments without IO, then one function per command.

mod args;
mod commands;
mod exit;
mod following;
mod logging;
mod plan_flags;
mod rdma_args;
mod roster;

use std::process::ExitCode;

use clap::Parser as _;

pub use args::Cli;
pub use exit::{Exit, ExitError};

use args::Command;

/// Parses the arguments, runs the command and gives the exit code; errors go to stderr.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let outcome = match cli.command {
        Command::Worker { args } => return commands::worker::run(args),
        Command::Keygen(args) => commands::keygen::run(&args),
        Command::Agent(args) => commands::agent::run(*args, cli.verbose),
        Command::Sweep(args) => commands::sweep::run(&args, cli.verbose),
        Command::Attach(args) => commands::attach::attach(&args, cli.verbose),
        Command::Results(args) => commands::attach::results(&args, cli.verbose),
        Command::Cancel(args) => commands::cancel::run(&args, cli.verbose),
        Command::Status(args) => commands::status::run(&args, cli.verbose),
        Command::Report(args) => commands::report::run(&args),
        Command::Topo(args) => commands::topo::run(&args),
        Command::Demo(args) => commands::demo::run(&args, cli.verbose),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("error: {error}");
            error.exit.into()
        }
    }
}

/// Help and version are no errors; clap's own code for a wrong usage is 2, as ours.
fn usage(error: &clap::Error) -> ExitCode {
    // A reader of --help that went away needs no message.
    let _: Result<_, _> = error.print();
    if error.use_stderr() { Exit::Usage.into() } else { Exit::Pass.into() }
}
