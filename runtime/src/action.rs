//! What a `JobMaster` wants done.

use regrow_protocol::{
    DataDirectoryId, ExecutionAttemptId, JobVertexId, ReportAnswer, Split, TaskDeployment, WorkerId,
};

use crate::{CommitPlan, JobOutcome, KillHow, OutputPreparation, RecoveryReport, Timestamp};

/// A wish; the shell carries it out and, where that has a result, says it as an input.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Tell a worker who leads the run; it answers with its registration.
    AnnounceMaster {
        /// Whom.
        worker: WorkerId,
    },
    /// Ask the shuffle service of a worker for all partitions of the run with metrics.
    GetAllPartitionsWithMetrics {
        /// Whose.
        worker: WorkerId,
    },
    /// Run an attempt.
    SubmitTask {
        /// Where.
        worker: WorkerId,
        /// What.
        deployment: Box<TaskDeployment>,
    },
    /// End an attempt.
    CancelTask {
        /// Where it runs.
        worker: WorkerId,
        /// Which one.
        attempt: ExecutionAttemptId,
    },
    /// Answer a split request.
    AnswerSplitRequest {
        /// Where the task runs.
        worker: WorkerId,
        /// Who asked.
        attempt: ExecutionAttemptId,
        /// Number of the request.
        request: u64,
        /// The split, or none when nothing is left to read.
        split: Option<Split>,
    },
    /// Answer the report of a finish.
    AnswerReport {
        /// Who reported.
        worker: WorkerId,
        /// Whose finish.
        attempt: ExecutionAttemptId,
        /// What became of it.
        answer: ReportAnswer,
    },
    /// Answer reports of finishes: they are accepted.
    AcceptReports {
        /// Who reported.
        worker: WorkerId,
        /// Whose finishes.
        attempts: Vec<ExecutionAttemptId>,
    },
    /// Have outputs released, the finish record first.
    ReleasePartitions {
        /// The process that serves the directory.
        worker: WorkerId,
        /// Where they lie.
        data_directory: DataDirectoryId,
        /// Whose.
        attempts: Vec<ExecutionAttemptId>,
    },
    /// Tell the `ResourceManager` how many slots the run could use at this moment, all together.
    DeclareDemand {
        /// Slots held plus slots wanted.
        slots: u32,
        /// Whose slots are of no use: all that is to run failed there, and may run elsewhere.
        avoid: Vec<WorkerId>,
    },
    /// Give slots back to the `ResourceManager`.
    ReturnSlots {
        /// Whose.
        worker: WorkerId,
        /// How many.
        count: u32,
    },
    /// List the splits of a source, on a worker thread; answers with `SplitsDiscovered`.
    DiscoverSplits {
        /// Whose.
        vertex: JobVertexId,
    },
    /// Check the output directories and make the hidden ones; answers with `OutputPrepared`.
    PrepareOutput(OutputPreparation),
    /// Compare the staged files of all winners with their recorded lengths; answers with
    /// `StagedFilesVerified`. Publishes nothing.
    VerifyStagedFiles(Box<CommitPlan>),
    /// Publish the output; answers with `CommitEnded`.
    Commit(Box<CommitPlan>),
    /// Say `Woken` at a moment, or as soon as possible after it. A later wish does not replace it.
    WakeAt(Timestamp),
    /// Tell the client that its submission is accepted and recorded.
    AcknowledgeSubmission,
    /// Tell whoever cancelled that the cancel is recorded, or why it is refused.
    AcknowledgeCancel {
        /// Why the cancel is refused, if it is.
        refused: Option<String>,
    },
    /// Keep and show the report of this life's recovery.
    ReportRecovery(Box<RecoveryReport>),
    /// End this life: the planned kill with the lowest percentage of those that were left. Nothing
    /// after it is carried out.
    Die(KillHow),
    /// End this life and make no other in this process: an end, a commit or a recovery waited for
    /// the log longer than `job-event.store.unavailable-timeout`. All is kept, and the run can be
    /// resumed.
    StepDown {
        /// Why the log cannot be written.
        reason: String,
    },
    /// The job is terminal, and the log says so: store the result, tell the client, have all of the
    /// run released, remove the log and the graph, in this order.
    Conclude(Box<JobOutcome>),
}
