//! Following a run: its records are fetched as they come, shown, and kept in the run folder.

use std::time::{Duration, Instant};

use bench_core::ids::{Epoch, RunId};
use bench_core::message::{Request, Response, RunStatus, WatchReply};
use bench_core::record::{NodePresence, RunRecord, RunStart};
use bench_core::report::{ReportError, RunReport};
use bench_core::schedule::Schedule;
use thiserror::Error;

use super::session::{Client, ClientError};
use crate::output::{FolderError, Progress, RunFolder};

/// Where the records of a run go on the client's side.
#[derive(Debug)]
pub struct RunSink {
    records: Vec<RunRecord>,
    /// The epoch whose coordinator numbered them.
    epoch: Option<Epoch>,
    folder: Option<RunFolder>,
    progress: Progress,
    announced: bool,
}

/// How following ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The last record is here.
    Ended,
    /// What there is so far is here; the run goes on.
    SoFar,
}

/// Why a run cannot be followed.
#[derive(Debug, Error)]
pub enum FollowError {
    /// The mesh cannot be asked.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The run folder cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The mesh does not know the run.
    #[error("the mesh knows no run{}", .run.map_or(String::new(), |run| format!(" {run}")))]
    UnknownRun {
        /// The run.
        run: Option<RunId>,
    },
}

impl RunSink {
    /// Records that are shown, and kept in `folder` if there is one.
    pub fn new(folder: Option<RunFolder>) -> Self {
        Self { records: Vec::new(), epoch: None, folder, progress: Progress::new(), announced: false }
    }

    /// The report of what is here.
    ///
    /// # Errors
    /// [`ReportError`] if the run has not begun.
    pub fn report(&self) -> Result<RunReport, ReportError> {
        RunReport::from_records(&self.records)
    }

    /// The run folder.
    pub fn folder(&self) -> Option<&RunFolder> {
        self.folder.as_ref()
    }

    /// Writes the whole report into the folder and takes the progress away.
    ///
    /// # Errors
    /// [`FolderError`].
    pub fn finish(&mut self) -> Result<(), FolderError> {
        self.progress.finish();
        match (&mut self.folder, RunReport::from_records(&self.records)) {
            (Some(folder), Ok(report)) => folder.write_report(&report),
            (Some(_) | None, Ok(_) | Err(_)) => Ok(()),
        }
    }

    fn take(&mut self, reply: WatchReply) -> Result<(), FolderError> {
        if self.epoch != Some(reply.epoch) && reply.from > 0 {
            // The numbers are another coordinator's: what is here is fetched anew from it.
            self.progress
                .say(&format!("the coordinator changed: epoch {} goes on with the run", reply.epoch));
            self.records.clear();
            self.epoch = Some(reply.epoch);
            return Ok(());
        }
        self.epoch = Some(reply.epoch);
        let mut round_over = false;
        for record in reply.records {
            match &record {
                RunRecord::Started(start) if !self.announced => {
                    self.announced = true;
                    self.begin(start)?;
                }
                RunRecord::Started(_) => {}
                RunRecord::Round(_) => round_over = true,
                RunRecord::Note(note) => self.progress.say(&note.text),
                RunRecord::Observed(_) | RunRecord::Lost(_) | RunRecord::Added(_) | RunRecord::Ended(_) => {}
            }
            self.records.push(record);
        }
        self.progress.show(&reply.status);
        if round_over
            && let Some(folder) = self.folder.as_mut().filter(|folder| folder.is_due())
            && let Ok(report) = RunReport::from_records(&self.records)
        {
            folder.write_report(&report)?;
        }
        Ok(())
    }

    fn begin(&mut self, start: &RunStart) -> Result<(), FolderError> {
        self.progress.say(&announce(start));
        match &self.folder {
            Some(folder) => folder.write_plan(&start.plan),
            None => Ok(()),
        }
    }
}

/// Fetches records until the run ends or, with `wait` false, until there is none left to fetch.
///
/// A lost connection is dialed again for half a minute; the run does not care.
///
/// # Errors
/// [`FollowError`].
pub async fn follow(
    client: &mut Client,
    run: Option<RunId>,
    wait: bool,
    sink: &mut RunSink,
) -> Result<Followed, FollowError> {
    let mut run = run;
    let mut lost_since: Option<Instant> = None;
    loop {
        let patience = if wait { WATCH_WAIT } else { Duration::ZERO };
        let request = Request::Watch { run, from: sink.records.len() as u64, wait: patience };
        match client.call(&request, WATCH_WAIT + ANSWER_GRACE).await {
            Ok(Response::Records(reply)) => {
                lost_since = None;
                run = Some(reply.run);
                let (empty, status) = (reply.records.is_empty(), reply.status.clone());
                sink.take(reply)?;
                match how_far(sink, &status) {
                    Followed::Ended => return Ok(Followed::Ended),
                    Followed::SoFar if !wait && empty => return Ok(Followed::SoFar),
                    Followed::SoFar => {}
                }
            }
            // A new coordinator may not have taken the run up yet.
            Ok(_) if sink.epoch.is_some() && wait && !has_waited(&mut lost_since) => {
                tokio::time::sleep(RECONNECT_PAUSE).await;
            }
            Ok(_) => return Err(FollowError::UnknownRun { run }),
            Err(error) => {
                if has_waited(&mut lost_since) {
                    return Err(error.into());
                }
                tokio::time::sleep(RECONNECT_PAUSE).await;
                // The next question tells whether it worked.
                let _: Result<_, _> = client.reconnect().await;
            }
        }
    }
}

/// Whether nothing has been heard for half a minute.
fn has_waited(lost_since: &mut Option<Instant>) -> bool {
    lost_since.get_or_insert_with(Instant::now).elapsed() > RECONNECT_FOR
}

fn how_far(sink: &RunSink, status: &RunStatus) -> Followed {
    match sink.records.last() {
        Some(RunRecord::Ended(_)) if status.ended => Followed::Ended,
        Some(_) | None => Followed::SoFar,
    }
}

/// The schedule as people see it before it starts.
fn announce(start: &RunStart) -> String {
    let absent: Vec<String> = start
        .roster
        .iter()
        .zip(&start.nodes)
        .filter_map(|(name, node)| match node {
            NodePresence::Absent { reason } => Some(format!("absent: {name}, {reason}\n")),
            NodePresence::Present(_) => None,
        })
        .collect();
    let schedule = Schedule::of_run(start);
    let schedule = schedule.map_or_else(|error| error.to_string(), |schedule| schedule.describe(&start.plan));
    format!("run {}\n{}{}", start.run, absent.concat(), schedule)
}

/// How long one question waits for news.
const WATCH_WAIT: Duration = Duration::from_secs(2);

/// How much longer than that an answer may take.
const ANSWER_GRACE: Duration = Duration::from_secs(10);

/// How long a lost connection is dialed again.
const RECONNECT_FOR: Duration = Duration::from_secs(30);

/// Pause between two attempts.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
