//! What the Dispatcher has done on the store's thread.

use std::path::{Path, PathBuf};

use regrow_protocol::{Epoch, JobId, RunId, SubmissionId};
use regrow_runtime::{
    JobEvent, JobGraph, JobOutcome, JobSubmission, LogPosition, Lsn, ReadLog, RecoveryReport,
    StoredBatch, encode_batch, read_log, with_causes,
};
use regrow_store::{BatchPosition, EventStore, Log, StoreError, Table};
use tokio::time::Instant;
use tracing::{error, warn};

use super::{
    admission::{self, AcceptedJobs, Admission, SubmitError, store_result},
    ending::failed,
};
use crate::{
    archive::{Archive, ArchivedJob},
    event_writer::LogSize,
    output::OutputCommitter,
    recovery_reports,
    run_directory::NotedRun,
};

/// Results that a store keeps although the archive has forgotten their jobs; above this they go.
const RESULTS_MAX: usize = 1_000;

/// A log that was opened for a life.
#[derive(Debug)]
pub(super) struct OpenedLog {
    /// What counts of it.
    pub(super) read: ReadLog,
    /// Its end: beyond it nothing of older lives exists.
    pub(super) sealed: Option<LogPosition>,
    /// How large it is.
    pub(super) size: LogSize,
    /// Whether a manifest, not the log, says that the commit had begun.
    pub(super) decided: bool,
    /// How long that took.
    pub(super) read_log_ms: u64,
}

/// Why work on the store failed.
#[derive(Debug)]
pub(super) enum StoreFailure {
    /// The disk refused; it may heal.
    Sick(String),
    /// Another process leads.
    Fenced(String),
    /// Only a person can help.
    Unusable(StoreError),
}

impl From<StoreError> for StoreFailure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Io { .. } | StoreError::Poisoned { .. } => Self::Sick(with_causes(&error)),
            StoreError::Fenced { .. } | StoreError::Withdrawn { .. } => {
                Self::Fenced(with_causes(&error))
            }
            StoreError::InUse { .. }
            | StoreError::Damaged { .. }
            | StoreError::Format { .. }
            | StoreError::Invalid { .. } => Self::Unusable(error),
        }
    }
}

/// Tries `work`; if the store is poisoned by what somebody else tried, once more after opening it
/// afresh.
fn healed<T>(
    store: &mut dyn EventStore,
    work: impl Fn(&mut dyn EventStore) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    match work(store) {
        Err(StoreError::Poisoned { .. } | StoreError::Io { .. }) => {
            store.reopen()?;
            work(store)
        }
        other => other,
    }
}

/// Opens a handle afresh that another writer's failure poisoned: before work that is tried once.
fn heal(store: &mut dyn EventStore) -> Result<(), StoreError> {
    healed(store, |store| store.keys(Table::Results)).map(drop)
}

/// Decides about `submission` in the leadership `term`; without one, the next is claimed, above all
/// that were noted for the run. `obstacle` is why it may not begin a run, if it may not.
pub(super) fn admit(
    store: &mut dyn EventStore,
    archive: &Archive,
    submission: &JobSubmission,
    (term, mut noted): (Option<u64>, Option<NotedRun>),
    obstacle: Option<String>,
) -> Result<(u64, Admission), SubmitError> {
    let term = match (term, &noted) {
        (Some(term), _) => term,
        (None, Some(noted)) => claim_term(store, noted.term().map_err(Box::new)?)?,
        (None, None) => claim_term(store, 0)?,
    };
    let admission = admission::admit(store, archive, submission, noted.as_ref(), obstacle)?;
    if let (Some(noted), Some(accepted)) = (&mut noted, admission.accepted()) {
        noted.adopt(accepted, term).map_err(Box::new)?;
    }
    Ok((term, admission))
}

/// What a leadership begins with.
#[derive(Debug)]
pub(super) struct Inherited {
    /// Its term.
    pub(super) term: u64,
    /// The jobs that it is to lead.
    pub(super) jobs: Vec<JobSubmission>,
    /// Those that it cannot lead, with the cause.
    pub(super) unreadable: Vec<(JobId, String)>,
    /// The runs that are known to have ended.
    pub(super) ended: Vec<RunId>,
}

/// Claims the next term of leadership, and lists what it is to know of jobs.
pub(super) fn inherit(
    store: &mut dyn EventStore,
    archive: &Archive,
) -> Result<Inherited, StoreError> {
    let term = claim_term(store, 0)?;
    let AcceptedJobs { jobs, lost, unreadable } =
        healed(store, |store| admission::accepted_jobs(store))?;
    for (job, cause) in lost {
        give_up(store, archive, &job, cause)?;
    }
    let ended = healed(store, |store| admission::ended_runs(store))?;
    Ok(Inherited { term, jobs, unreadable, ended })
}

/// Ends a job of which nothing is left that says what it is: it failed, with that cause.
fn give_up(
    store: &mut dyn EventStore,
    archive: &Archive,
    job: &JobId,
    cause: String,
) -> Result<(), StoreError> {
    error!(%job, %cause, "a job is given up");
    let unknown = JobSubmission {
        job: job.clone(),
        run: RunId::from_bits(0),
        submission: SubmissionId::from_bits(0),
        job_name: String::new(),
        arguments: Vec::new(),
        graph: JobGraph::default(),
        ledger: None,
        settings: Vec::new(),
    };
    let outcome = failed(&unknown, Epoch::default(), cause);
    let ended = ArchivedJob {
        outcome: outcome.clone(),
        job_name: String::new(),
        arguments: Vec::new(),
        submission: None,
        reports: Vec::new(),
    };
    // The archive is for people, and its disk may be full.
    if let Err(error) = archive.write(&ended, &[]) {
        warn!(%job, error = %with_causes(&error), "a job that is given up cannot be archived");
    }
    match store_result(store, &unknown, &outcome) {
        Ok(()) => healed(store, |store| store.remove(Table::JobGraphs, job.as_str())),
        Err(SubmitError::Store(error)) => Err(error),
        Err(error) => {
            warn!(%job, error = %with_causes(&error), "its result cannot be stored");
            Ok(())
        }
    }
}

fn claim_term(store: &mut dyn EventStore, floor: u64) -> Result<u64, StoreError> {
    healed(store, |store| store.claim_term_above(floor))
}

/// Claims `epoch` of a run and reads its log. Tried once: a try that failed may have claimed the
/// epoch all the same, and the next takes a higher one.
pub(super) fn open_log(
    store: &mut dyn EventStore,
    submission: &JobSubmission,
    epoch: Epoch,
    output: &OutputCommitter,
) -> Result<OpenedLog, StoreFailure> {
    let began = Instant::now();
    heal(store)?;
    let log = store.open_log(submission.run, epoch)?;
    let mut read = read(&log);
    let size = size(&log, &read);
    let decided = go_by_the_manifest(store, submission, (epoch, output), &mut read)?;
    Ok(OpenedLog {
        sealed: log.batches.last().map(|batch| position(batch.position)),
        size,
        decided,
        read,
        read_log_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// Where what counts of a log may end before the commit, a manifest in the output directory decides
/// (rules 5.12 and 6.2): the commit had begun, which is stored before anybody acts on it.
fn go_by_the_manifest(
    store: &mut dyn EventStore,
    submission: &JobSubmission,
    (epoch, output): (Epoch, &OutputCommitter),
    read: &mut ReadLog,
) -> Result<bool, StoreFailure> {
    let lacks_something = read.damage.as_ref().is_some_and(|damage| !damage.covered);
    if !(read.events.is_empty() || lacks_something) {
        return Ok(false);
    }
    let decided = output.decided(submission.run, &submission.graph.sinks);
    let Some(plan) = decided else { return Ok(false) };
    let mut events = Vec::new();
    if read.events.is_empty() {
        events.push(JobEvent::JobSubmitted(Box::new(submission.clone())));
    }
    events.push(JobEvent::CommitStarted(Box::new(plan)));
    let batch = encode_batch(epoch, read.next, &events)
        .map_err(|error| StoreFailure::Sick(with_causes(&error)))?;
    // Not tried again under this epoch: it may be stored.
    store.append(submission.run, epoch, &batch)?;
    read.next = Lsn(read.next.0.saturating_add(events.len() as u64));
    read.events.extend(events);
    Ok(true)
}

/// What counts of a log.
pub(crate) fn read(log: &Log) -> ReadLog {
    let batches: Vec<StoredBatch<'_>> = log
        .batches
        .iter()
        .map(|batch| StoredBatch {
            position: position(batch.position),
            follows_damage: batch.follows_damage,
            bytes: &batch.bytes,
        })
        .collect();
    read_log(&batches, log.damage.as_ref().map(ToString::to_string).as_deref())
}

fn position(position: BatchPosition) -> LogPosition {
    let BatchPosition { segment, sequence, checksum } = position;
    LogPosition { segment, sequence, checksum }
}

fn size(log: &Log, read: &ReadLog) -> LogSize {
    let all: u64 = log.batches.iter().map(|batch| batch.bytes.len() as u64).sum();
    let snapshot = match read.events.first() {
        Some(JobEvent::Snapshot { state }) => state.len() as u64,
        Some(_) | None => 0,
    };
    LogSize::new(snapshot, all.saturating_sub(snapshot))
}

/// Where an ended run goes.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) archive: Archive,
    pub(super) reports: PathBuf,
}

/// Stores the result, then the archive; durable when it returns, and repeatable (rule 3.9).
pub(super) fn conclude(
    store: &mut dyn EventStore,
    places: &Places,
    submission: &JobSubmission,
    outcome: &JobOutcome,
) -> Result<(), String> {
    heal(store).map_err(|error| with_causes(&error))?;
    store_result(store, submission, outcome).map_err(|error| with_causes(&error))?;
    let log = store.read_log(submission.run).map_err(|error| with_causes(&error))?;
    let batches: Vec<Vec<u8>> = log.batches.into_iter().map(|batch| batch.bytes).collect();
    let job = ArchivedJob {
        outcome: outcome.clone(),
        job_name: submission.job_name.clone(),
        arguments: submission.arguments.clone(),
        submission: Some(submission.submission),
        reports: recovery_reports::read_all(&places.reports).unwrap_or_else(|error| {
            warn!(job = %submission.job, %error, "recovery reports cannot be archived");
            Vec::new()
        }),
    };
    places.archive.write(&job, &batches).map_err(|error| with_causes(&error))
}

/// Removes the log of an ended run, then its graph: in this order, so that a crash between leaves
/// something that says what is to be cleaned up.
pub(super) fn forget(
    store: &mut dyn EventStore,
    places: &Places,
    submission: &JobSubmission,
) -> Result<(), StoreError> {
    healed(store, |store| store.remove_log(submission.run))?;
    drop(std::fs::remove_dir_all(&places.reports));
    // A run of a process of its own keeps more there, and stays until that ends.
    drop(places.reports.parent().map(std::fs::remove_dir));
    healed(store, |store| store.remove(Table::JobGraphs, submission.job.as_str()))?;
    forget_old_results(store, places)
}

/// Keeps the results in proportion to what the archive knows.
fn forget_old_results(store: &mut dyn EventStore, places: &Places) -> Result<(), StoreError> {
    let keys = store.keys(Table::Results)?;
    if keys.len() <= RESULTS_MAX {
        return Ok(());
    }
    let known = places.archive.jobs().unwrap_or_default();
    for key in keys.iter().filter(|key| !known.iter().any(|job| job.as_str() == key.as_str())) {
        store.remove(Table::Results, key)?;
    }
    Ok(())
}

/// Keeps a recovery report while the job runs. It is for people: a disk that refuses it stops
/// nothing.
pub(super) fn keep_report(directory: &Path, report: &RecoveryReport) {
    if let Err(error) = recovery_reports::write(directory, report) {
        warn!(directory = %directory.display(), %error, "a recovery report cannot be kept");
    }
}
