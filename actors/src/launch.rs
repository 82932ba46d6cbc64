//! Starts the actors of a process and waits for them.

use std::{path::PathBuf, sync::Arc, time::Duration};

use regrow_protocol::{JobId, RunId};
use regrow_runtime::{JobOutcome, JobStatus, KillHow, KillPoint, Options, RecoveryReport};
use serde::{Deserialize, Serialize};
use thiserror::Error;

mod cancel_handle;
mod cluster_jobs;
mod local_client;
mod local_run;
mod local_system;
mod store_loss;
#[cfg(test)]
mod tests;

pub use self::{
    cancel_handle::CancelHandle,
    store_loss::{StandIn, StoreLoss, StoreLossKind},
};
pub use crate::run_directory::{
    InterruptedRuns, OutputInUse, check_output_unused, interrupted_runs, sweep,
};
use crate::{dispatcher::SubmitError, task::TaskFactory};

/// A job to run with all roles in this process.
pub struct LocalRun {
    /// What the user called it, or 128 random bits.
    pub job: JobId,
    /// Whether the user called it so: then others may know that name.
    pub named: bool,
    /// Name under which the program registered the job.
    pub job_name: String,
    /// Its arguments, as its builder reads them.
    pub arguments: Vec<u8>,
    /// File to which each attempt appends its start and end, absolute.
    pub ledger: Option<PathBuf>,
    /// Settings that differ from the defaults, as `key`, `value`; recorded with the job.
    pub settings: Vec<(String, String)>,
    /// The same, parsed.
    pub options: Options,
    /// The data directory; this run uses `runs/<job-id>/` and `archive/` in it.
    pub data_directory: PathBuf,
    /// How many `TaskExecutor`s; at least 1.
    pub task_managers: u32,
    /// How many slots each of them has; at least 1.
    pub slots: u32,
    /// Planned kills of the `JobMaster`.
    pub kills: Vec<KillPoint>,
    /// The program's jobs.
    pub factory: Arc<dyn TaskFactory>,
}

/// What happens while a job runs, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RunUpdate {
    /// The event store of the interrupted run is lost: finish records and what the run directory
    /// notes stand in for it.
    StoreLost(StoreLoss),
    /// The job is accepted and recorded, or the run that was there goes on.
    Accepted {
        /// Which job.
        job: JobId,
        /// Which run of it.
        run: RunId,
        /// Whether an interrupted run goes on.
        resumed: bool,
    },
    /// How the job stands; at most some per second, and one after each change of its state.
    Status(Box<JobStatus>),
    /// The `JobMaster` died.
    JobMasterLost {
        /// As planned; none for a panic nobody asked for.
        planned: Option<KillHow>,
        /// Text of the panic, if it was one.
        panic: Option<String>,
    },
    /// A `JobMaster` came back and decided what to keep.
    Recovered(Box<RecoveryReport>),
    /// The cancel that was asked for is recorded, or refused because the output is being published.
    CancelAnswered {
        /// Why it is refused, if it is.
        refused: Option<String>,
    },
}

/// How a local run ended.
#[derive(Clone, Debug)]
pub struct LocalResult {
    /// The terminal state and all that belongs to it.
    pub outcome: JobOutcome,
    /// From the first start of the run in this process to its end.
    pub duration: Duration,
    /// Whether the result was there before: the same job had finished earlier.
    pub joined: bool,
}

/// Why a run could not start or go on. No job of that name was harmed.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The job id belongs to a run with another job or other arguments.
    #[error("job {job} exists with other arguments: {existing}; it was asked to run: {requested}")]
    OtherJob {
        /// The id.
        job: JobId,
        /// Job name and arguments of the run that is there.
        existing: String,
        /// Job name and arguments of this one.
        requested: String,
    },
    /// The job id belongs to the cluster of the data directory.
    #[error(
        "job {job} belongs to the cluster of the data directory {directory}: to go on with it, start \
         `regrow jobmanager --data-dir {directory}` and workers, then `regrow wait {job} --data-dir \
         {directory}`; to run it anew, choose another --job-id"
    )]
    OfCluster {
        /// The id.
        job: JobId,
        /// The data directory.
        directory: PathBuf,
    },
    /// Somebody leads the cluster of the data directory, whose the job id may be.
    #[error(
        "a JobManager leads the cluster of the data directory {directory}, to which job {job} may \
         belong: submit the job there with `regrow submit`, or run it without --job-id or with \
         another --data-dir"
    )]
    ClusterLed {
        /// The id.
        job: JobId,
        /// The data directory.
        directory: PathBuf,
    },
    /// Nobody can tell whether the job id belongs to the cluster of the data directory.
    #[error(
        "cannot tell whether job {job} belongs to the cluster of the data directory {directory}; run \
         it without --job-id or with another --data-dir"
    )]
    ClusterUnclear {
        /// The id.
        job: JobId,
        /// The data directory.
        directory: PathBuf,
        /// What is wrong with the store of the cluster.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The program builds another graph than that of the interrupted run.
    #[error(
        "job {job} was interrupted, and this program builds another graph for it; resume it with the \
         program that began it, or remove {directory} to give up what it finished"
    )]
    OtherGraph {
        /// The id.
        job: JobId,
        /// The directory of the run.
        directory: PathBuf,
    },
    /// The job's graph cannot be built or is not valid.
    #[error("{0}")]
    Job(String),
    /// Another process uses the data directory of this job, or it cannot be used.
    #[error("cannot open the event store")]
    Store(#[from] regrow_store::StoreError),
    /// The data directory cannot be used.
    #[error("cannot {action} {path}")]
    Directory {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What an interrupted run ran cannot be told.
    #[error(
        "{path}, which says what the interrupted run runs, cannot be understood: {reason}; \
         restore it to resume the run, or remove {directory} to give up what it finished"
    )]
    RunFile {
        /// The file.
        path: PathBuf,
        /// The directory of the run.
        directory: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The job is refused.
    #[error("cannot start the job")]
    Submit(#[source] SubmitError),
    /// The log could not be used for too long, another process leads, or the actors of this one
    /// died: all is kept, and the job stays resumable.
    #[error("the job cannot go on: {0}; what is finished is kept, and the job can be resumed")]
    Abandoned(String),
    /// The job could not be recorded: nothing ran, and nothing of it is left.
    #[error("the job was not accepted: {0}")]
    NotAccepted(String),
    /// What a dead run staged in an output directory cannot be removed.
    #[error("cannot remove what an earlier run of the job staged")]
    Staging(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The system gives no random numbers, of which ids are made.
    #[error("cannot read random numbers from the system")]
    Random(#[from] getrandom::Error),
    /// The system refuses a thread.
    #[error("cannot start a thread; allow more threads to this user")]
    Thread(#[source] std::io::Error),
    /// The workers of this process cannot be started.
    #[error("cannot start the workers")]
    Workers(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A run that was interrupted and can be resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptedRun {
    /// Its job.
    pub job: JobId,
    /// Name under which the program registered the job.
    pub job_name: String,
    /// Its arguments.
    pub arguments: Vec<u8>,
    /// Its settings.
    pub settings: Vec<(String, String)>,
    /// Its ledger.
    pub ledger: Option<PathBuf>,
}
