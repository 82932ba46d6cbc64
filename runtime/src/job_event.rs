//! What a run records.

use std::{net::SocketAddr, sync::Arc};

use regrow_protocol::{
    DataDirectoryId, Epoch, ExecutionAttemptId, ExecutionVertexId, FinishRecord, JobId,
    JobVertexId, RunId, SubmissionId, WorkerId,
};
use serde::{Deserialize, Serialize};

use crate::{CommitPlan, CoordinatorDelta, JobGraph, JobState, VertexPlan, VertexReset};

/// A fact, stored in the log. Replaying all facts rebuilds the recorded part of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum JobEvent {
    /// Record 0 of a run.
    JobSubmitted(Box<JobSubmission>),
    /// First record of each life of the `JobMaster`.
    EpochStarted {
        /// The life that begins.
        epoch: Epoch,
        /// How the one before ended.
        previous: PreviousLife,
        /// The end of what older epochs wrote; beyond it nothing of theirs exists.
        sealed: Option<LogPosition>,
        /// Whether the log before it is gone or damaged: what it knew of re-runs is lost.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        log_lacks: bool,
    },
    /// What a life found and kept; before it is durable, a life only asks.
    RecoveryDecided(Box<RecoveryDecision>),
    /// A vertex got its parallelism and input ranges.
    JobVertexInitialized {
        /// Which one.
        vertex: JobVertexId,
        /// What was decided.
        plan: VertexPlan,
    },
    /// A worker is about to get its first attempt, or has begun to keep a directory that holds what
    /// others wrote.
    WorkerUsed {
        /// Which one.
        worker: WorkerId,
        /// Where it stores its partitions.
        data_directory: DataDirectoryId,
        /// The life of the stand-alone shuffle service that keeps them; it counts as used, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shuffle_service: Option<WorkerId>,
        /// Where they listen: the next life calls them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        addresses: Vec<SocketAddr>,
    },
    /// A worker will not come back.
    WorkerLost {
        /// Which one.
        worker: WorkerId,
    },
    /// An attempt won its subtask.
    ExecutionVertexFinished {
        /// Who ran it.
        worker: WorkerId,
        /// Where its outputs lie.
        data_directory: DataDirectoryId,
        /// The proof.
        record: Arc<FinishRecord>,
    },
    /// Subtasks run again.
    ExecutionVerticesReset {
        /// Each, with its counters after the reset.
        resets: Vec<VertexReset>,
    },
    /// Resets are void: the partitions came back.
    ResetTakenBack {
        /// Whose; the attempt counts as finished again.
        attempts: Vec<ExecutionAttemptId>,
    },
    /// The state of a coordinator changed.
    CoordinatorChanged {
        /// Whose coordinator.
        vertex: JobVertexId,
        /// Number of the change, from 1 per coordinator.
        number: u64,
        /// The change.
        delta: CoordinatorDelta,
    },
    /// The whole state of a coordinator. Never revoked by a reset.
    CoordinatorSnapshot {
        /// Whose.
        vertex: JobVertexId,
        /// The last change that it includes; 0 for none.
        last_delta: u64,
        /// The state, as the coordinator encodes it.
        #[serde(with = "serde_bytes")]
        state: Vec<u8>,
    },
    /// The winners are chosen: from here on the output is published, whatever happens.
    CommitStarted(Box<CommitPlan>),
    /// The output is published.
    CommitFinished,
    /// The user asked to cancel.
    CancelRequested,
    /// The job began to fail: no new attempt is made.
    FailureDecided {
        /// Why, with all causes.
        error: String,
    },
    /// The job is terminal.
    JobTerminated {
        /// A terminal state.
        state: JobState,
        /// Why it failed.
        error: Option<String>,
    },
    /// The whole recorded state; replaces all events before it.
    Snapshot {
        /// The state, encoded.
        #[serde(with = "serde_bytes")]
        state: Vec<u8>,
    },
}

/// A job as it was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSubmission {
    /// Its name.
    pub job: JobId,
    /// This run of it.
    pub run: RunId,
    /// The call of submit that made it.
    pub submission: SubmissionId,
    /// Name under which the program registered the job.
    pub job_name: String,
    /// Arguments of the job, as its builder reads them.
    #[serde(with = "serde_bytes")]
    pub arguments: Vec<u8>,
    /// What it consists of.
    pub graph: JobGraph,
    /// File to which each attempt appends its start and end, absolute.
    pub ledger: Option<String>,
    /// Settings in force for the run: those that differ from the defaults, as `key`, `value`.
    pub settings: Vec<(String, String)>,
}

/// How the life before ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreviousLife {
    /// There was none.
    None,
    /// Its process is gone, or nothing is known.
    Unknown,
    /// Its actor panicked.
    Panicked {
        /// Text of the panic.
        message: String,
    },
    /// The user had planned its end.
    KilledAsPlanned,
}

/// A position in a stored log, as the store counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LogPosition {
    /// Segment of the log.
    pub segment: u64,
    /// Sequence number of the last batch.
    pub sequence: u64,
    /// CRC32C of that batch.
    pub checksum: u32,
}

/// What a life decided to keep; atomic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecoveryDecision {
    /// Finishes that a report or a finish file proves and the log does not, with their place.
    pub found: Vec<(WorkerId, DataDirectoryId, Arc<FinishRecord>)>,
    /// Subtasks that run again.
    pub resets: Vec<VertexReset>,
    /// Changes of coordinators (claims, returned splits), in order, with their numbers.
    pub deltas: Vec<(JobVertexId, u64, CoordinatorDelta)>,
    /// Highest attempt number seen per subtask, where it is above what the log shows.
    pub attempt_numbers: Vec<(ExecutionVertexId, u32)>,
    /// Former workers that did not come back within the wait.
    pub lost_workers: Vec<WorkerId>,
}
