//! What a store holds of a job: what was accepted, and how it ended.

use regrow_protocol::{JobId, RunId, decode, encode};
use regrow_runtime::{JobOutcome, JobSubmission, with_causes};
use regrow_store::{EventStore, StoreError, Table};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tracing::error;

use super::SubmitError;

const FORMAT: u32 = 1;

/// A job as it was accepted.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredJob {
    pub(super) format: u32,
    pub(super) submission: JobSubmission,
}

/// A result.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredResult {
    format: u32,
    pub(super) job_name: String,
    #[serde(with = "serde_bytes")]
    pub(super) arguments: Vec<u8>,
    pub(super) outcome: JobOutcome,
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

/// All jobs that were accepted and are not over. One whose document cannot be used is told of, and
/// stops no other.
///
/// # Errors
/// When the store cannot be read.
pub(in crate::dispatcher) fn accepted_jobs(
    store: &mut dyn EventStore,
) -> Result<Vec<JobSubmission>, StoreError> {
    let mut jobs = Vec::new();
    for key in store.keys(Table::JobGraphs)? {
        let read = key
            .parse::<JobId>()
            .map_err(|error| with_causes(&error))
            .and_then(|job| Documents::read(store, &job).map_err(|error| with_causes(&error)));
        match read {
            Ok(Documents { accepted: Some(submission), .. }) => jobs.push(submission),
            Ok(Documents { accepted: None, damages, .. }) => {
                error!(job = %key, ?damages, "what the store holds of a job is damaged");
            }
            Err(reason) => error!(job = %key, %reason, "a job cannot be recovered"),
        }
    }
    Ok(jobs)
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

/// Stores the result of a run, durable: from here on it is only cleaned up.
pub(in crate::dispatcher) fn store_result(
    store: &mut dyn EventStore,
    submission: &JobSubmission,
    outcome: &JobOutcome,
) -> Result<(), SubmitError> {
    let result = StoredResult {
        format: FORMAT,
        job_name: submission.job_name.clone(),
        arguments: submission.arguments.clone(),
        outcome: outcome.clone(),
    };
    put(store, Table::Results, &submission.job, &result)
}

fn put<T: Serialize>(
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
trait Document: DeserializeOwned {
    fn format(&self) -> u32;
}

impl Document for StoredJob {
    fn format(&self) -> u32 {
        self.format
    }
}

impl Document for StoredResult {
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
