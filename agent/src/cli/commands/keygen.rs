//! `railmesh keygen`: a new mesh key.

use transport::control::identity::MeshKey;

use crate::cli::args::KeygenArgs;
use crate::cli::exit::{Exit, ExitError};

pub(crate) fn run(args: &KeygenArgs) -> Result<Exit, ExitError> {
    let key = MeshKey::generate().map_err(ExitError::not_measured)?;
    key.write_new(&args.file).map_err(ExitError::usage)?;
    println!(
        "{}: a new mesh key; copy it to every node and start each agent with --key",
        args.file.display()
    );
    Ok(Exit::Pass)
}
