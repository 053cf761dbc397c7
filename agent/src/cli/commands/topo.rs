//! `railmesh topo`: the node's GPUs, HCAs and rails, from this machine or from captures.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use bench_core::topology::{Inventory, TopologyDocument, assess, import, nccl_xml, text};

use crate::cli::args::TopoArgs;
use crate::cli::exit::{Exit, ExitError};
use crate::inventory::read_topology;

pub(crate) fn run(args: &TopoArgs) -> Result<Exit, ExitError> {
    let inventory = if args.from.is_empty() { live(&args.root)? } else { captured(&args.from)? };
    let assessment = assess(&inventory);
    if args.json {
        print!("{}", TopologyDocument::new(&inventory, &assessment).to_json());
    } else {
        print!("{}", text::render(&inventory, &assessment));
    }
    if let Some(path) = &args.nccl_xml {
        let xml = nccl_xml::write(&inventory, &assessment).map_err(ExitError::not_measured)?;
        std::fs::write(path, xml)
            .with_context(|| format!("--nccl-xml: cannot write {}", path.display()))
            .map_err(ExitError::usage)?;
        eprintln!("{}: a NCCL topology file; set NCCL_TOPO_FILE to it", path.display());
    }
    Ok(Exit::Pass)
}

fn live(root: &Path) -> Result<Inventory, ExitError> {
    if !root.join("sys").is_dir() {
        let error = anyhow!(
            "--root {}: there is no sys below it; name the folder that holds sys and proc",
            root.display()
        );
        return Err(ExitError::usage(error));
    }
    Ok(read_topology(root))
}

/// Reads every file into one inventory.
fn captured(files: &[std::path::PathBuf]) -> Result<Inventory, ExitError> {
    let mut inventory = Inventory::default();
    for path in files {
        let text = read(path)
            .with_context(|| format!("--from: cannot read {}", path.display()))
            .map_err(ExitError::usage)?;
        let before = inventory.captures.len();
        import(&mut inventory, &path.display().to_string(), &text);
        if inventory.captures.len() == before {
            eprintln!("warning: {}: no capture of a known tool in it", path.display());
        }
    }
    if inventory.captures.is_empty() {
        let error = anyhow!("no capture of a known tool was read; railmesh topo --help lists the tools");
        return Err(ExitError::not_measured(error));
    }
    Ok(inventory)
}

/// A text file as it is; what is no UTF-8 becomes a replacement character.
fn read(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let limit = MAX_FILE_BYTES + 1;
    if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(anyhow!(
            "it has more than {} MiB; cut out the captures of one node",
            MAX_FILE_BYTES >> 20
        ));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// A log with captures of one node in it is smaller by far.
const MAX_FILE_BYTES: u64 = 64 << 20;
