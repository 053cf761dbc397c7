//! Progress on stderr: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use bench_core::message::RunStatus;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Progress of one run.
#[derive(Debug)]
pub struct Progress {
    form: Form,
}

#[derive(Debug)]
enum Form {
    Bar(ProgressBar),
    Lines { last: Option<(Instant, String)> },
}

impl Progress {
    /// Progress for wherever stderr goes.
    pub fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { form: Form::Lines { last: None } };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{msg:>10} {wide_bar} {pos}/{len} rounds {elapsed}")
            .expect("a constant template");
        bar.set_style(style);
        Self { form: Form::Bar(bar) }
    }

    /// Shows how far the run is.
    pub fn show(&mut self, status: &RunStatus) {
        match &mut self.form {
            Form::Bar(bar) => {
                bar.set_length(u64::from(status.rounds_total));
                bar.set_position(u64::from(status.rounds_done));
                bar.set_message(status.phase.clone());
            }
            Form::Lines { last } => {
                let due = last
                    .as_ref()
                    .is_none_or(|(at, phase)| at.elapsed() >= LINE_EVERY || *phase != status.phase);
                if due {
                    eprintln!("{}", line(status));
                    *last = Some((Instant::now(), status.phase.clone()));
                }
            }
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        match &self.form {
            Form::Bar(bar) => bar.finish_and_clear(),
            Form::Lines { .. } => {}
        }
    }

    /// Prints a line without disturbing the bar.
    pub fn say(&self, text: &str) {
        match &self.form {
            Form::Bar(bar) => bar.suspend(|| eprintln!("{text}")),
            Form::Lines { .. } => eprintln!("{text}"),
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

fn line(status: &RunStatus) -> String {
    let waiting: Vec<String> = status
        .waiting_for
        .iter()
        .take(WAITERS_SHOWN)
        .map(|(node, what)| format!("{node} ({what})"))
        .collect();
    let tail =
        if waiting.is_empty() { String::new() } else { format!(", waiting for {}", waiting.join(", ")) };
    format!("{}: {}/{} rounds{tail}", status.phase, status.rounds_done, status.rounds_total)
}

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Nodes named in a line.
const WAITERS_SHOWN: usize = 4;
