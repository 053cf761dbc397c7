//! The `railmesh` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    railmesh::cli::main()
}
