//! The messages between a `JobMaster` and its workers, one enum per direction.
//!
//! Commands carry the epoch of the `JobMaster` in their [`Envelope`](crate::Envelope); reports are
//! judged by the attempt that they name.

use std::{net::SocketAddr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    DataDirectoryId, ExecutionAttemptId, FinishRecord, Split, TaskDeployment, TaskFailure, WorkerId,
};

/// What a `JobMaster` says to a `TaskExecutor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToTaskExecutor {
    /// A `JobMaster` of the envelope's epoch leads the run now: end the attempts of older epochs,
    /// free their slots, and answer with [`ToJobMaster::Registered`].
    JobMasterStarted,
    /// Run an attempt. Repeating it is harmless.
    SubmitTask(Box<TaskDeployment>),
    /// End an attempt, unless it is sealed already.
    CancelTask {
        /// Which one.
        attempt: ExecutionAttemptId,
    },
    /// Answers [`ToJobMaster::SplitRequested`].
    SplitAnswered {
        /// Who asked.
        attempt: ExecutionAttemptId,
        /// Number of the request it answers.
        request: u64,
        /// The split, or none when there is nothing left to read.
        split: Option<Split>,
    },
    /// Answers [`ToJobMaster::TaskFinished`].
    ReportAnswered {
        /// Who finished.
        attempt: ExecutionAttemptId,
        /// What became of it.
        answer: ReportAnswer,
    },
    /// Answers many [`ToJobMaster::TaskFinished`]: each is accepted.
    ReportsAccepted {
        /// Who finished.
        attempts: Vec<ExecutionAttemptId>,
    },
    /// The run has ended, or is not known as running: forget it as `standing` says.
    RunEnded {
        /// What the sender knows of the run.
        standing: RunStanding,
    },
}

/// What becomes of a reported finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReportAnswer {
    /// It is durably recorded; the report need not be sent again.
    Accepted,
    /// Another attempt counts; discard the output.
    Superseded,
}

/// What a Dispatcher knows of a run that a worker holds data of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunStanding {
    /// It is led, or will be: keep all.
    Running,
    /// It reached a terminal state: release all.
    Ended,
    /// Not known here: keep all until the retention time-out.
    Unknown,
}

/// What a `JobMaster` says to a `ShuffleService`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToShuffleService {
    /// Report all partitions of the run, with [`ToJobMaster::AllPartitionsWithMetrics`].
    GetAllPartitionsWithMetrics,
    /// Release attempts' outputs, the finish record first.
    ReleasePartitions {
        /// Whose outputs; for an attempt without outputs, its finish record.
        attempts: Vec<ExecutionAttemptId>,
    },
    /// The run ended: release all of it.
    ReleaseRun,
}

/// What workers say to a `JobMaster`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToJobMaster {
    /// A worker is there for this run. Sent upon each connection and upon `JobMasterStarted`.
    Registered {
        /// Who.
        worker: WorkerDescription,
        /// What it runs and has not been acknowledged for.
        inventory: Inventory,
    },
    /// Answers [`ToShuffleService::GetAllPartitionsWithMetrics`].
    AllPartitionsWithMetrics {
        /// The worker whose process serves the directory.
        worker: WorkerId,
        /// Where they lie.
        data_directory: DataDirectoryId,
        /// The finish record of each sealed attempt of the run.
        finished: Vec<FinishRecord>,
    },
    /// A worker may hold partitions of the run; sent upon each connection, so that whoever knows
    /// says how the run stands.
    RunHeld {
        /// Who holds them.
        worker: WorkerId,
    },
    /// An attempt is sealed. Sent again to each new master until answered.
    TaskFinished {
        /// Who ran it.
        worker: WorkerId,
        /// Where its outputs lie.
        data_directory: DataDirectoryId,
        /// The proof.
        record: Arc<FinishRecord>,
    },
    /// An attempt ended without a result; its slot is free.
    TaskFailed {
        /// Who ran it.
        worker: WorkerId,
        /// Which one.
        attempt: ExecutionAttemptId,
        /// Why.
        failure: TaskFailure,
    },
    /// A worker refused a command for the run, of an older epoch or after its end. For people: a
    /// master that is not the last one is still alive somewhere.
    CommandRefused {
        /// Who refused it.
        worker: WorkerId,
    },
    /// An attempt of a source wants a split.
    SplitRequested {
        /// Who runs it.
        worker: WorkerId,
        /// Who asks.
        attempt: ExecutionAttemptId,
        /// Number of the request within the attempt, from 0; a repetition has the same number.
        request: u64,
    },
}

/// A worker as a `JobMaster` sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerDescription {
    /// This life of its process.
    pub worker: WorkerId,
    /// Where it stores its partitions.
    pub data_directory: DataDirectoryId,
    /// How many attempts it runs at a time.
    pub slots: u32,
    /// Where other hosts read its partitions, if it serves them.
    #[serde(default)]
    pub shuffle_address: Option<SocketAddr>,
    /// Who answers for what is in its data directory.
    #[serde(default)]
    pub keeper: PartitionKeeper,
}

/// Who answers for what is in the data directory of a worker: reports it, releases it, and is the
/// one whose loss is a loss of partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionKeeper {
    /// The worker itself.
    #[default]
    Worker,
    /// A stand-alone shuffle service of its host, which is a worker of the same data directory.
    ShuffleService,
}

/// What a worker holds of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// Attempts that still run.
    pub running: Vec<ExecutionAttemptId>,
    /// Finishes that no master has acknowledged.
    pub unacknowledged: Vec<Arc<FinishRecord>>,
}
