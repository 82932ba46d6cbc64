//! What a `JobMaster` hears.

use std::sync::Arc;

use regrow_protocol::{
    DataDirectoryId, ExecutionAttemptId, FinishRecord, Inventory, JobVertexId, Split, TaskFailure,
    WorkerDescription, WorkerId,
};

use crate::Lsn;

/// Something that happened to a job from outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A connection to a worker is open; nothing is known of it yet.
    WorkerConnected {
        /// Which one.
        worker: WorkerId,
    },
    /// A worker says what it is and what it holds of the run. May come again at any time.
    WorkerRegistered {
        /// What it is.
        worker: WorkerDescription,
        /// What it holds.
        inventory: Inventory,
    },
    /// A shuffle service reported all partitions of the run in one data directory.
    PartitionsReported {
        /// Whose process serves the directory.
        worker: WorkerId,
        /// Which directory.
        data_directory: DataDirectoryId,
        /// The finish record of each sealed attempt.
        finished: Vec<FinishRecord>,
    },
    /// The connection to a worker closed; it may come back.
    WorkerDisconnected {
        /// Which one.
        worker: WorkerId,
    },
    /// A worker's process is certainly gone.
    WorkerLost {
        /// Which one.
        worker: WorkerId,
    },
    /// A new process keeps the data directory of a worker, whose own process is certainly gone. Told
    /// before anything else of the new one.
    WorkerReplaced {
        /// Who is gone.
        worker: WorkerId,
        /// The directory.
        data_directory: DataDirectoryId,
        /// The worker that the new process is.
        by: WorkerId,
    },
    /// The `ResourceManager` grants slots of a worker to this run.
    SlotsGranted {
        /// Whose.
        worker: WorkerId,
        /// How many.
        count: u32,
    },
    /// A worker reports a finished attempt.
    TaskFinished {
        /// Who ran it.
        worker: WorkerId,
        /// Where its outputs lie.
        data_directory: DataDirectoryId,
        /// The proof.
        record: Arc<FinishRecord>,
    },
    /// A worker reports an attempt that ended without a result.
    TaskFailed {
        /// Who ran it.
        worker: WorkerId,
        /// Which one.
        attempt: ExecutionAttemptId,
        /// Why.
        failure: TaskFailure,
    },
    /// An attempt of a source wants a split.
    SplitRequested {
        /// Who runs it.
        worker: WorkerId,
        /// Who asks.
        attempt: ExecutionAttemptId,
        /// Number of the request within the attempt.
        request: u64,
    },
    /// The discovery of a source's splits ended.
    SplitsDiscovered {
        /// Whose.
        vertex: JobVertexId,
        /// The splits, numbered from 0; or why there are none.
        result: Result<Vec<Split>, String>,
    },
    /// The hidden directories beside the outputs were made, or could not be.
    OutputPrepared {
        /// Per sink, in order, its staging directory; or what went wrong, with what to do.
        result: Result<Vec<String>, String>,
    },
    /// The staged files of all winners were looked at, or could not be.
    StagedFilesVerified {
        /// The attempts whose files are missing or wrong, which run again; or what went wrong: the
        /// job fails.
        result: Result<Vec<ExecutionAttemptId>, String>,
    },
    /// The commit ended.
    CommitEnded {
        /// Success, or what went wrong, with what to do: the job fails.
        result: Result<(), String>,
    },
    /// The user asked to cancel.
    CancelRequested,
    /// All events up to a position are on stable storage.
    Persisted {
        /// The position after the newest of them.
        upto: Lsn,
    },
    /// The log cannot be written; what is buffered waits.
    LogDegraded {
        /// What went wrong.
        reason: String,
    },
    /// The log was reopened after a failure: a full snapshot must be recorded first.
    LogReopened,
    /// The log has grown out of proportion: a full snapshot may replace what is before it.
    SnapshotWanted,
    /// A moment asked for by [`Action::WakeAt`](crate::Action::WakeAt) has come.
    Woken,
}
