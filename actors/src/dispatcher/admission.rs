//! Whether a submission begins a run, joins one, or is refused (rule 1.1).

use regrow_protocol::{JobId, decode, encode};
use regrow_runtime::{JobOutcome, JobState, JobSubmission, with_causes};
use regrow_store::{EventStore, StoreError, Table};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tracing::warn;

use crate::archive::{Archive, ArchivedJob};

/// Longest arguments that are shown whole.
const SHOWN_CHARS_MAX: usize = 200;

const FORMAT: u32 = 1;

/// Why a submission is refused. Nothing was harmed.
#[derive(Debug, Error)]
pub enum SubmitError {
    /// The id belongs to another job, or to the same one with other arguments.
    #[error("job {job} exists with other arguments: {existing}; it was asked to run: {requested}")]
    OtherJob {
        /// The id.
        job: JobId,
        /// What it belongs to.
        existing: String,
        /// What was submitted.
        requested: String,
    },
    /// The store cannot be used.
    #[error("cannot use the event store")]
    Store(#[from] StoreError),
    /// A document in the store cannot be understood.
    #[error("cannot read what the event store holds of job {job}: {reason}")]
    Document {
        /// Which job.
        job: JobId,
        /// What was found.
        reason: String,
    },
}

impl SubmitError {
    /// Names a job with its arguments, for people.
    pub(crate) fn describe(job_name: &str, arguments: &[u8]) -> String {
        let Ok(text) = std::str::from_utf8(arguments) else {
            let hash = crc32c::crc32c(arguments);
            return format!("{job_name} ({} bytes of arguments, {hash:08x})", arguments.len());
        };
        let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
        if shown.len() < text.len() {
            shown.push_str(" ...");
        }
        format!("{job_name} {shown}")
    }
}

/// What becomes of a submission.
#[derive(Debug)]
pub(super) enum Admission {
    /// It begins a run.
    New,
    /// Its run goes on: this is what was accepted.
    Again(Box<JobSubmission>),
    /// Its run has a result, but not all of it is cleaned up.
    Concluding(Box<JobSubmission>, Box<JobOutcome>),
    /// Its run has ended.
    Ended(Box<JobOutcome>),
}

/// A job as it was accepted, in the store.
#[derive(Serialize, Deserialize)]
struct StoredJob {
    format: u32,
    submission: JobSubmission,
}

/// A result, in the store.
#[derive(Serialize, Deserialize)]
struct StoredResult {
    format: u32,
    job_name: String,
    #[serde(with = "serde_bytes")]
    arguments: Vec<u8>,
    outcome: JobOutcome,
}

/// Decides about `submission`; a new one is stored before this returns.
pub(super) fn admit(
    store: &mut dyn EventStore,
    archive: &Archive,
    submission: &JobSubmission,
) -> Result<Admission, SubmitError> {
    let key = submission.job.as_str();
    let accepted = match store.get(Table::JobGraphs, key)? {
        Some(bytes) => Some(read::<StoredJob>(&submission.job, &bytes)?.submission),
        None => None,
    };
    let result = match store.get(Table::Results, key)? {
        Some(bytes) => Some(read::<StoredResult>(&submission.job, &bytes)?),
        None => None,
    };
    if let Some(accepted) = accepted {
        check_same(submission, &accepted.job_name, &accepted.arguments)?;
        return Ok(match result.filter(|result| result.outcome.run == accepted.run) {
            Some(result) => Admission::Concluding(Box::new(accepted), Box::new(result.outcome)),
            None => Admission::Again(Box::new(accepted)),
        });
    }
    if let Some(ended) = ended_run(archive, &submission.job, result)
        && ended.outcome.state == JobState::Finished
    {
        check_same(submission, &ended.job_name, &ended.arguments)?;
        return Ok(Admission::Ended(Box::new(ended.outcome)));
    }
    let document = StoredJob { format: FORMAT, submission: submission.clone() };
    let bytes = encode(&document).map_err(|error| SubmitError::Document {
        job: submission.job.clone(),
        reason: with_causes(&error),
    })?;
    store.put(Table::JobGraphs, key, &bytes)?;
    Ok(Admission::New)
}

/// Stores the result of a run, durable: from here on it is only cleaned up.
pub(super) fn store_result(
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
    let bytes = encode(&result).map_err(|error| SubmitError::Document {
        job: submission.job.clone(),
        reason: with_causes(&error),
    })?;
    Ok(store.put(Table::Results, submission.job.as_str(), &bytes)?)
}

/// The newest run of a job that ended. An archive that cannot be read forgets a job; it does not
/// forbid to run it.
fn ended_run(archive: &Archive, job: &JobId, result: Option<StoredResult>) -> Option<ArchivedJob> {
    if let Some(StoredResult { job_name, arguments, outcome, .. }) = result {
        return Some(ArchivedJob { outcome, job_name, arguments, reports: Vec::new() });
    }
    archive.read(job).unwrap_or_else(|error| {
        warn!(%job, error = %with_causes(&error), "the archive of this job is ignored");
        None
    })
}

fn check_same(
    submission: &JobSubmission,
    job_name: &str,
    arguments: &[u8],
) -> Result<(), SubmitError> {
    if submission.job_name == job_name && submission.arguments == arguments {
        return Ok(());
    }
    Err(SubmitError::OtherJob {
        job: submission.job.clone(),
        existing: SubmitError::describe(job_name, arguments),
        requested: SubmitError::describe(&submission.job_name, &submission.arguments),
    })
}

/// A document of this program's format.
trait Document: for<'de> Deserialize<'de> {
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

fn read<T: Document>(job: &JobId, bytes: &[u8]) -> Result<T, SubmitError> {
    let refused = |reason| SubmitError::Document { job: job.clone(), reason };
    let document: T = decode(bytes).map_err(|error| refused(with_causes(&error)))?;
    if document.format() != FORMAT {
        let found = document.format();
        return Err(refused(format!("it has format {found}, this program reads {FORMAT}")));
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use regrow_protocol::{Accumulators, RunId, SubmissionId};
    use regrow_runtime::JobGraph;
    use regrow_store::MemoryStore;

    use super::*;

    fn submission(arguments: &str, run: u128) -> JobSubmission {
        JobSubmission {
            job: "nightly".parse().unwrap(),
            run: RunId::from_bits(run),
            submission: SubmissionId::from_bits(run),
            job_name: "sort".to_owned(),
            arguments: arguments.as_bytes().to_vec(),
            graph: JobGraph::default(),
            ledger: None,
            settings: Vec::new(),
        }
    }

    fn outcome(run: u128, state: JobState) -> JobOutcome {
        JobOutcome {
            job: "nightly".parse().unwrap(),
            run: RunId::from_bits(run),
            state,
            recoveries: 0,
            error: None,
            accumulators: Accumulators::default(),
        }
    }

    fn archived(archive: &Archive, arguments: &str, state: JobState) {
        let job = ArchivedJob {
            outcome: outcome(1, state),
            job_name: "sort".to_owned(),
            arguments: arguments.as_bytes().to_vec(),
            reports: Vec::new(),
        };
        archive.write(&job, &[]).unwrap();
    }

    #[test]
    fn rule_1_1_an_equal_submission_goes_on_with_the_run_that_is_there() {
        let data = tempfile::tempdir().unwrap();
        let archive = Archive::new(data.path());
        let mut store = MemoryStore::new();
        let first = admit(&mut store, &archive, &submission("--input a", 1)).unwrap();
        assert!(matches!(first, Admission::New));
        let second = admit(&mut store, &archive, &submission("--input a", 2)).unwrap();
        let Admission::Again(accepted) = second else { panic!("{second:?}") };
        assert_eq!(*accepted, submission("--input a", 1));
    }

    #[test]
    fn rule_1_1_other_arguments_under_a_known_id_are_refused_with_both_named() {
        let data = tempfile::tempdir().unwrap();
        let archive = Archive::new(data.path());
        let mut store = MemoryStore::new();
        admit(&mut store, &archive, &submission("--input a", 1)).unwrap();
        let refused = admit(&mut store, &archive, &submission("--input b", 2)).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("sort --input a") && text.contains("sort --input b"), "{text}");
    }

    #[test]
    fn rule_1_1_a_finished_job_gives_its_result_and_a_failed_one_runs_again() {
        let data = tempfile::tempdir().unwrap();
        let archive = Archive::new(data.path());
        archived(&archive, "--input a", JobState::Finished);
        let again = admit(&mut MemoryStore::new(), &archive, &submission("--input a", 2));
        assert!(
            matches!(again.unwrap(), Admission::Ended(outcome) if outcome.run == RunId::from_bits(1))
        );
        let other = admit(&mut MemoryStore::new(), &archive, &submission("--input b", 2));
        assert!(matches!(other, Err(SubmitError::OtherJob { .. })));
        for state in [JobState::Failed, JobState::Canceled] {
            archived(&archive, "--input a", state);
            let again = admit(&mut MemoryStore::new(), &archive, &submission("--input b", 2));
            assert!(matches!(again.unwrap(), Admission::New));
        }
    }

    #[test]
    fn rule_3_9_a_run_with_a_result_is_only_cleaned_up() {
        let data = tempfile::tempdir().unwrap();
        let archive = Archive::new(data.path());
        let mut store = MemoryStore::new();
        let first = submission("--input a", 1);
        admit(&mut store, &archive, &first).unwrap();
        store_result(&mut store, &first, &outcome(1, JobState::Failed)).unwrap();
        let again = admit(&mut store, &archive, &submission("--input a", 2)).unwrap();
        assert!(
            matches!(again, Admission::Concluding(_, outcome) if outcome.state == JobState::Failed)
        );
    }

    #[test]
    fn a_document_of_another_format_is_refused_with_both_named() {
        let data = tempfile::tempdir().unwrap();
        let archive = Archive::new(data.path());
        let mut store = MemoryStore::new();
        let document = StoredJob { format: 9, submission: submission("", 1) };
        store.put(Table::JobGraphs, "nightly", &encode(&document).unwrap()).unwrap();
        let text = admit(&mut store, &archive, &submission("", 2)).unwrap_err().to_string();
        assert!(text.contains("format 9") && text.contains("reads 1"), "{text}");
    }
}
