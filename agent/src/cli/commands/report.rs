//! `railmesh report`: a report drawn again from a result.json.

use std::fs;

use anyhow::Context as _;
use bench_core::report::{RunReport, csv, markdown, text};

use crate::cli::args::{FormatArg, ReportArgs};
use crate::cli::exit::{Exit, ExitError};

pub(crate) fn run(args: &ReportArgs) -> Result<Exit, ExitError> {
    let path = if args.file.is_dir() { args.file.join("result.json") } else { args.file.clone() };
    let json = fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))
        .map_err(ExitError::usage)?;
    let report = RunReport::from_json(&json)
        .with_context(|| format!("{} is no result of railmesh", path.display()))
        .map_err(ExitError::usage)?;
    let drawn = match args.format {
        FormatArg::Text => text::render(&report),
        FormatArg::Markdown => markdown::render(&report),
        FormatArg::Csv => csv::render(&report),
        FormatArg::Json => report.to_json(),
    };
    print!("{drawn}");
    Ok(Exit::Pass)
}
