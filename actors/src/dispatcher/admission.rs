//! Whether a submission begins a run, joins one, or is refused (rule 1.1).

mod documents;
mod named_arguments;
mod results;

use regrow_protocol::{JobId, RunId};
use regrow_runtime::{JobOutcome, JobState, JobSubmission, with_causes};
use regrow_store::{EventStore, StoreError};
use thiserror::Error;
use tracing::warn;

pub(super) use self::{
    documents::{AcceptedJobs, accepted_jobs, ended_runs},
    results::{Which, store_result},
};
use self::{
    documents::{Documents, store_job},
    results::StoredResult,
};
use crate::{
    archive::{Archive, ArchivedJob},
    launch::LaunchError,
    run_directory::NotedRun,
};

/// Longest arguments that are shown whole.
const SHOWN_CHARS_MAX: usize = 200;

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
    /// Nothing is known of the job.
    #[error("there is no job {job}; `list` names those that are known")]
    NoSuchJob {
        /// The id.
        job: JobId,
    },
    /// The job was accepted, and cannot be led: what is stored of it is of no use.
    #[error("job {job} cannot be recovered: {cause}")]
    Unrecovered {
        /// Which job.
        job: JobId,
        /// Why.
        cause: String,
    },
    /// Too much waits to be answered: ask again later. What was accepted before goes on.
    #[error(
        "the JobManager cannot answer yet, and {waiting} questions wait for it already; ask again in \
         a moment"
    )]
    Busy {
        /// How many wait.
        waiting: usize,
    },
    /// The run that was asked about has ended, and what is known of it gave way to another one.
    #[error(
        "what is known of run {run} of job {job} gave way to another run of it while it was read; ask \
         again to see that one"
    )]
    AnotherRun {
        /// Which job.
        job: JobId,
        /// The run that was asked about.
        run: RunId,
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
    /// The job is new, and what it is to write to is of no use.
    #[error("{0}")]
    Output(String),
    /// What the run directory notes of the job, or holds of the run, cannot be used.
    #[error(transparent)]
    Directory(#[from] Box<LaunchError>),
}

impl SubmitError {
    /// Another job under a known id: names both, and the arguments in which they differ.
    pub(crate) fn other_job(
        job: JobId,
        (existing_name, existing): (&str, &[u8]),
        (requested_name, requested): (&str, &[u8]),
    ) -> Self {
        let differing = named_arguments::differing(existing, requested);
        if let Some((existing, requested)) = differing.filter(|_| existing_name == requested_name) {
            return Self::OtherJob {
                job,
                existing: format!("{existing_name} with {existing}"),
                requested: format!("{requested_name} with {requested}"),
            };
        }
        Self::OtherJob {
            job,
            existing: Self::describe(existing_name, existing),
            requested: Self::describe(requested_name, requested),
        }
    }

    /// Names a job with its arguments, for people.
    fn describe(job_name: &str, arguments: &[u8]) -> String {
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
    /// It begins a run: this one.
    New(Box<JobSubmission>),
    /// Its run goes on.
    Again {
        /// What was accepted.
        accepted: Box<JobSubmission>,
        /// What is lost of it, for people.
        lacks: Option<String>,
    },
    /// Its run has a result, but not all of it is cleaned up.
    Concluding(Box<JobSubmission>, Box<JobOutcome>),
    /// As before, and it is in the archive already.
    Archived(Box<JobSubmission>, Box<JobOutcome>),
    /// Its run has ended.
    Ended(Box<JobOutcome>),
}

impl Admission {
    /// The run that is led or cleaned up from here on, if any is.
    pub(super) fn accepted(&self) -> Option<&JobSubmission> {
        match self {
            Self::New(accepted)
            | Self::Again { accepted, .. }
            | Self::Concluding(accepted, _)
            | Self::Archived(accepted, _) => Some(accepted),
            Self::Ended(_) => None,
        }
    }
}

/// Decides about `submission`. `noted` is what the run directory says of the job, where there is one:
/// it stands in for what the store has lost (rules 5.12 and 5.13). `obstacle` is why it may not begin
/// a run, if it may not. What is accepted is stored before this returns.
pub(super) fn admit(
    store: &mut dyn EventStore,
    archive: &Archive,
    submission: &JobSubmission,
    noted: Option<&NotedRun>,
    obstacle: Option<String>,
) -> Result<Admission, SubmitError> {
    let documents = Documents::read(store, &submission.job)?;
    let which = Which::Of(submission.submission);
    if documents.accepted.as_ref().is_none_or(|run| run.submission != submission.submission)
        && let Some(outcome) = documents.result.as_ref().and_then(|result| result.find(which))
    {
        return Ok(Admission::Ended(Box::new(outcome.clone())));
    }
    if let Some(accepted) = &documents.accepted {
        check_same(submission, &accepted.job_name, &accepted.arguments)?;
        return again(store, archive, accepted, (noted, &documents));
    }
    let known = noted.and_then(|noted| noted.accepted(submission));
    if let Some(accepted) = &known
        && documents.lost_job
    {
        store_job(store, accepted)?;
        return again(store, archive, accepted, (noted, &documents));
    }
    let unended = known.filter(|accepted| !documents.tells_the_end_of(accepted.run));
    if let (Some(noted), Some(accepted)) = (noted, &unended)
        && let Some(admission) = readmit(store, archive, accepted, (noted, &documents))?
    {
        return Ok(admission);
    }
    if let Some(damage) = documents.damages.into_iter().next() {
        return Err(damage.into());
    }
    if let Some(ended) = ended_run(archive, &submission.job, documents.result)
        && (ended.outcome.state == JobState::Finished || which.is(&ended.outcome, ended.submission))
    {
        check_same(submission, &ended.job_name, &ended.arguments)?;
        return Ok(Admission::Ended(Box::new(ended.outcome)));
    }
    if let Some(obstacle) = obstacle {
        return Err(SubmitError::Output(obstacle));
    }
    let begun = unended.unwrap_or_else(|| submission.clone());
    store_job(store, &begun)?;
    Ok(Admission::New(Box::new(begun)))
}

/// What becomes of a run that was accepted, as the store says or has said.
fn again(
    store: &mut dyn EventStore,
    archive: &Archive,
    accepted: &JobSubmission,
    (noted, documents): (Option<&NotedRun>, &Documents),
) -> Result<Admission, SubmitError> {
    let run = Box::new(accepted.clone());
    if let Some(result) = &documents.result
        && documents.tells_the_end_of(accepted.run)
    {
        let outcome = Box::new(result.outcome.clone());
        return Ok(Admission::Concluding(run, outcome));
    }
    if !documents.damages.is_empty()
        && let Some(admission) = archived(store, archive, accepted)?
    {
        return Ok(admission);
    }
    Ok(Admission::Again { accepted: run, lacks: lacks(noted, documents) })
}

/// What becomes of a run that the store does not know, while its directory does; none if it had not
/// begun.
fn readmit(
    store: &mut dyn EventStore,
    archive: &Archive,
    accepted: &JobSubmission,
    (noted, documents): (&NotedRun, &Documents),
) -> Result<Option<Admission>, SubmitError> {
    if let Some(admission) = archived(store, archive, accepted)? {
        return Ok(Some(admission));
    }
    let lacks = lacks(Some(noted), documents);
    if lacks.is_none() && !noted.remains().map_err(Box::new)?.any {
        return Ok(None);
    }
    store_job(store, accepted)?;
    Ok(Some(Admission::Again { accepted: Box::new(accepted.clone()), lacks }))
}

/// The end of a run that the archive knows and the store has lost: stored again, so that the run is
/// only cleaned up, whatever happens.
fn archived(
    store: &mut dyn EventStore,
    archive: &Archive,
    accepted: &JobSubmission,
) -> Result<Option<Admission>, SubmitError> {
    let ended = ended_run(archive, &accepted.job, None);
    let Some(ended) = ended.filter(|ended| ended.outcome.run == accepted.run) else {
        return Ok(None);
    };
    store_result(store, accepted, &ended.outcome)?;
    store_job(store, accepted)?;
    Ok(Some(Admission::Archived(Box::new(accepted.clone()), Box::new(ended.outcome))))
}

/// What is lost of a run, and what stands in for it; none if nothing is.
fn lacks(noted: Option<&NotedRun>, documents: &Documents) -> Option<String> {
    let lost = noted.map(NotedRun::lacked).unwrap_or_default().iter().cloned();
    let damaged = documents.damages.iter().map(|damage| {
        format!("{}; its log and the run's run.json stand in for it", with_causes(damage))
    });
    let all: Vec<String> = lost.chain(damaged).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Whether `job` was accepted and is not over, as the store says or has said.
///
/// # Errors
/// When the store cannot be read, or was written by a later program.
pub(crate) fn is_held(store: &mut dyn EventStore, job: &JobId) -> Result<bool, SubmitError> {
    let documents = Documents::read(store, job)?;
    Ok(documents.accepted.is_some() || documents.lost_job)
}

/// How the run of a job ended that is meant, if it did.
pub(super) fn ended(
    store: &mut dyn EventStore,
    archive: &Archive,
    job: &JobId,
    which: Which,
) -> Result<Option<JobOutcome>, SubmitError> {
    if let Some(result) = Documents::read(store, job)?.result {
        return Ok(result.find(which).cloned());
    }
    let archived = ended_run(archive, job, None);
    let is_meant = |ended: &ArchivedJob| which.is(&ended.outcome, ended.submission);
    Ok(archived.filter(is_meant).map(|ended| ended.outcome))
}

/// The newest run of a job that ended. An archive that cannot be read forgets a job; it does not
/// forbid to run it.
fn ended_run(archive: &Archive, job: &JobId, result: Option<StoredResult>) -> Option<ArchivedJob> {
    if let Some(StoredResult { job_name, arguments, outcome, submission, .. }) = result {
        let reports = Vec::new();
        return Some(ArchivedJob { outcome, job_name, arguments, submission, reports });
    }
    archive.read(job).unwrap_or_else(|error| {
        warn!(%job, error = %with_causes(&error), "the archive of this job is ignored");
        None
    })
}

pub(super) fn check_same(
    submission: &JobSubmission,
    job_name: &str,
    arguments: &[u8],
) -> Result<(), SubmitError> {
    if submission.job_name == job_name && submission.arguments == arguments {
        return Ok(());
    }
    let requested = (&*submission.job_name, &*submission.arguments);
    Err(SubmitError::other_job(submission.job.clone(), (job_name, arguments), requested))
}

#[cfg(test)]
mod tests;
