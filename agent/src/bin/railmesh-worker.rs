//! The worker as a file of its own; the same as the agent's `worker` subcommand.

use std::process::ExitCode;

fn main() -> ExitCode {
    railmesh::worker::main_from_args(std::env::args_os().skip(1))
}
