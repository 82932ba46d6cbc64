//! The events of a job, from the archive or from the store of a run that is not over.

use std::path::{Path, PathBuf};

use regrow_actors::archive::Archive;
use regrow_protocol::{Epoch, JobId, RunId};
use regrow_runtime::{EventBatch, Job, JobEvent, decode_batch, with_causes};
use regrow_store::{EventStore, StoreError, open_existing};

use super::error::CliError;
use crate::nearest::nearest;

/// An event with its place.
pub(crate) struct StoredEvent {
    /// Who recorded it.
    pub(crate) epoch: Epoch,
    /// Number of events before it.
    pub(crate) sequence: u64,
    /// What happened.
    pub(crate) event: JobEvent,
}

/// The events of a log, and what is wrong with it.
#[derive(Default)]
pub(crate) struct StoredEvents {
    /// What can be read, in order.
    pub(crate) events: Vec<StoredEvent>,
    /// What cannot.
    pub(crate) damage: Option<String>,
}

impl StoredEvents {
    /// Decodes batches, up to the first that is damaged.
    pub(crate) fn decode<'a>(batches: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut found = Self::default();
        for (number, bytes) in batches.into_iter().enumerate() {
            let EventBatch { epoch, first, events, version: _ } = match decode_batch(bytes) {
                Ok(batch) => batch,
                Err(error) => {
                    found.damage = Some(format!("batch {number}: {}", with_causes(&error)));
                    return found;
                }
            };
            let stored = (first.0..).zip(events);
            found.events.extend(stored.map(|(sequence, event)| StoredEvent {
                epoch,
                sequence,
                event,
            }));
        }
        found
    }
}

/// The events of `job`: those of an interrupted run if there is one, else the archived ones. Of a
/// cluster nobody may lead meanwhile.
pub(crate) fn of_job(
    data_directory: &Path,
    job: &JobId,
    of_cluster: bool,
) -> Result<StoredEvents, CliError> {
    if of_cluster {
        return match of_cluster_or_archive(data_directory, job)? {
            Some(events) => Ok(events),
            None => Err(unknown_job(data_directory, job)),
        };
    }
    let store = store_of(data_directory, job);
    if store.is_dir() {
        let mut store = open(&store)?;
        let mut all = StoredEvents::default();
        for run in store.runs().map_err(failed)? {
            let mut events = of_run(&mut *store, run)?;
            all.events.append(&mut events.events);
            all.damage = all.damage.or(events.damage);
        }
        return Ok(all);
    }
    if store.parent().is_some_and(Path::is_dir) {
        return Err(CliError::Failed(no_store(job)));
    }
    archived(data_directory, job)?.ok_or_else(|| unknown_job(data_directory, job))
}

fn archived(data_directory: &Path, job: &JobId) -> Result<Option<StoredEvents>, CliError> {
    let batches = Archive::new(data_directory).read_batches(job);
    let batches = batches.map_err(|error| CliError::Failed(with_causes(&error)))?;
    let decode = |batches: Vec<Vec<u8>>| StoredEvents::decode(batches.iter().map(Vec::as_slice));
    Ok(batches.map(decode))
}

fn of_cluster_or_archive(
    data_directory: &Path,
    job: &JobId,
) -> Result<Option<StoredEvents>, CliError> {
    match of_cluster(data_directory, job)? {
        Some(events) => Ok(Some(events)),
        None => archived(data_directory, job),
    }
}

/// The events of `job` in the store of a cluster that nobody leads, if it has not ended.
pub(crate) fn of_cluster(
    data_directory: &Path,
    job: &JobId,
) -> Result<Option<StoredEvents>, CliError> {
    let path = data_directory.join("store");
    if !path.is_dir() {
        return Ok(None);
    }
    let mut store = open(&path)?;
    for run in store.runs().map_err(failed)? {
        let found = of_run(&mut *store, run)?;
        let first = found.events.first().map(|stored| &stored.event);
        let of = first.and_then(|event| Job::submission_in(std::slice::from_ref(event)));
        if of.is_some_and(|submission| submission.job == *job) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The events of one run of a store.
pub(crate) fn of_run(store: &mut dyn EventStore, run: RunId) -> Result<StoredEvents, CliError> {
    let log = store.read_log(run).map_err(failed)?;
    let mut events = StoredEvents::decode(log.batches.iter().map(|batch| batch.bytes.as_slice()));
    if let Some(damage) = &log.damage {
        events.damage.get_or_insert_with(|| damage.to_string());
    }
    Ok(events)
}

/// Said of a run that is not over and has no store.
pub(crate) fn no_store(job: &JobId) -> String {
    format!(
        "the events of job {job} are in no store: they are kept in memory by the process that runs \
         it, were lost with it, or the store was removed; what had finished is proved by finish \
         records when the run is resumed"
    )
}

/// Where the store of a run is that is not over.
pub(crate) fn store_of(data_directory: &Path, job: &JobId) -> PathBuf {
    data_directory.join("runs").join(job.as_str()).join("store")
}

/// Opens the store at `path`, of whichever kind it is.
pub(crate) fn open(path: &Path) -> Result<Box<dyn EventStore>, CliError> {
    open_existing(path).map_err(failed)?.ok_or_else(|| {
        CliError::Usage(format!(
            "{} is no event store: it has no file FORMAT, which each store begins with",
            path.display()
        ))
    })
}

/// What to say when nothing is known of a job.
pub(crate) fn unknown_job(data_directory: &Path, job: &JobId) -> CliError {
    let known = Archive::new(data_directory).jobs().unwrap_or_default();
    let hint = nearest(job.as_str(), known.iter().map(JobId::as_str))
        .map_or_else(String::new, |near| format!("; did you mean {near}?"));
    CliError::Usage(format!(
        "there is no job {job} under the data directory {} ({} ended jobs are kept there){hint}",
        data_directory.display(),
        known.len()
    ))
}

fn failed(error: StoreError) -> CliError {
    CliError::Failed(with_causes(&error))
}
