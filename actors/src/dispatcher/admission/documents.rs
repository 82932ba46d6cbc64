//! What a store holds of a job: what was accepted, and how it ended.

use regrow_protocol::{JobId, RunId, decode, encode};
use regrow_runtime::{Job, JobSubmission, with_causes};
use regrow_store::{EventStore, StoreError, Table};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tracing::{error, warn};

use super::{SubmitError, results::StoredResult};
use crate::dispatcher::store_work::read;

/// The format that this program writes and reads.
pub(super) const FORMAT: u32 = 1;

/// A job as it was accepted.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredJob {
    pub(super) format: u32,
    pub(super) submission: JobSubmission,
}

/// What a store holds of a job.
#[derive(Default)]
pub(super) struct Documents {
    pub(super) accepted: Option<JobSubmission>,
    pub(super) result: Option<StoredResult>,
    /// Whether it has held what was accepted, and lost it.
    pub(super) lost_job: bool,
    /// What it has held and lost.
    pub(super) damages: Vec<StoreError>,
}

impl Documents {
    /// Reads both documents. A damaged one counts as none, and is told: what it said is known from
    /// elsewhere, or the caller refuses to go on.
    ///
    /// # Errors
    /// When the store cannot be read, or was written by a later program.
    pub(super) fn read(store: &mut dyn EventStore, job: &JobId) -> Result<Self, SubmitError> {
        let mut documents = Self::default();
        let accepted: Option<StoredJob> = documents.get(store, Table::JobGraphs, job)?;
        documents.accepted = accepted.map(|stored| stored.submission);
        documents.lost_job = !documents.damages.is_empty();
        documents.result = documents.get(store, Table::Results, job)?;
        Ok(documents)
    }

    /// Whether the store holds the result of `run`.
    pub(super) fn tells_the_end_of(&self, run: RunId) -> bool {
        self.result.as_ref().is_some_and(|result| result.outcome.run == run)
    }

    fn get<T: Document>(
        &mut self,
        store: &mut dyn EventStore,
        table: Table,
        job: &JobId,
    ) -> Result<Option<T>, SubmitError> {
        match store.get(table, job.as_str()) {
            Ok(bytes) => bytes.map(|bytes| decoded(job, &bytes)).transpose(),
            Err(error @ StoreError::Damaged { .. }) => {
                self.damages.push(error);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The jobs that were accepted and are not over.
#[derive(Default)]
pub(in crate::dispatcher) struct AcceptedJobs {
    /// Those that can be led.
    pub(in crate::dispatcher) jobs: Vec<JobSubmission>,
    /// Those of which nothing is left that says what they are, with what was found.
    pub(in crate::dispatcher) lost: Vec<(JobId, String)>,
    /// Those that this program cannot read, with the cause.
    pub(in crate::dispatcher) unreadable: Vec<(JobId, String)>,
}

/// All jobs that were accepted and are not over. Where the document of one is damaged, its log says
/// what it is; one of which nothing can be used stops no other.
///
/// # Errors
/// When the store cannot be read.
pub(in crate::dispatcher) fn accepted_jobs(
    store: &mut dyn EventStore,
) -> Result<AcceptedJobs, StoreError> {
    let mut found = AcceptedJobs::default();
    for key in store.keys(Table::JobGraphs)? {
        let job = match key.parse::<JobId>() {
            Ok(job) => job,
            Err(error) => {
                error!(%key, error = %with_causes(&error), "this names no job");
                continue;
            }
        };
        match Documents::read(store, &job) {
            Ok(Documents { accepted: Some(submission), .. }) => found.jobs.push(submission),
            Ok(Documents { damages, .. }) => match logged(store, &job)? {
                Some(submission) => {
                    warn!(%job, ?damages, "the log of a job stands in for a damaged document");
                    // A document that could not be mended is mended by the next leader.
                    drop(store_job(store, &submission));
                    found.jobs.push(submission);
                }
                None => found.lost.push((job, lost(&damages))),
            },
            Err(SubmitError::Store(
                error @ (StoreError::Io { .. } | StoreError::Poisoned { .. }),
            )) => {
                return Err(error);
            }
            Err(error) => found.unreadable.push((job, with_causes(&error))),
        }
    }
    Ok(found)
}

/// What the logs say was accepted as `job`.
fn logged(store: &mut dyn EventStore, job: &JobId) -> Result<Option<JobSubmission>, StoreError> {
    for run in store.runs()? {
        let log = read(&store.read_log(run)?);
        if let Some(submission) = Job::submission_in(&log.events).filter(|of| of.job == *job) {
            return Ok(Some(submission));
        }
    }
    Ok(None)
}

fn lost(damages: &[StoreError]) -> String {
    let damages: Vec<String> = damages.iter().map(|damage| with_causes(damage)).collect();
    format!(
        "what the event store held of the job is damaged, and its log does not say what it is: {}; \
         submit it again",
        damages.join("; ")
    )
}

/// The runs whose results the store holds. One that cannot be read tells nothing.
///
/// # Errors
/// When the store cannot be read.
pub(in crate::dispatcher) fn ended_runs(
    store: &mut dyn EventStore,
) -> Result<Vec<RunId>, StoreError> {
    let mut runs = Vec::new();
    for key in store.keys(Table::Results)? {
        let Ok(job) = key.parse::<JobId>() else { continue };
        let result = Documents::read(store, &job).ok().and_then(|documents| documents.result);
        runs.extend(result.map(|result| result.outcome.run));
    }
    Ok(runs)
}

/// Stores what is accepted, durable.
pub(super) fn store_job(
    store: &mut dyn EventStore,
    submission: &JobSubmission,
) -> Result<(), SubmitError> {
    let document = StoredJob { format: FORMAT, submission: submission.clone() };
    put(store, Table::JobGraphs, &submission.job, &document)
}

/// Stores a document, durable.
pub(super) fn put<T: Serialize>(
    store: &mut dyn EventStore,
    table: Table,
    job: &JobId,
    document: &T,
) -> Result<(), SubmitError> {
    let bytes = encode(document)
        .map_err(|error| SubmitError::Document { job: job.clone(), reason: with_causes(&error) })?;
    Ok(store.put(table, job.as_str(), &bytes)?)
}

/// A document of this program's format.
pub(super) trait Document: DeserializeOwned {
    fn format(&self) -> u32;
}

impl Document for StoredJob {
    fn format(&self) -> u32 {
        self.format
    }
}

/// The checksum of `bytes` was right: what cannot be understood was written by another version.
fn decoded<T: Document>(job: &JobId, bytes: &[u8]) -> Result<T, SubmitError> {
    let refused = |reason| SubmitError::Document { job: job.clone(), reason };
    let document: T = decode(bytes).map_err(|error| refused(with_causes(&error)))?;
    if document.format() != FORMAT {
        let found = document.format();
        return Err(refused(format!("it has format {found}, this program reads {FORMAT}")));
    }
    Ok(document)
}
