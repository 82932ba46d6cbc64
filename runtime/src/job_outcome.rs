//! How a job stands and how it ended.

use std::fmt;

use regrow_protocol::{Accumulators, JobId, RunId};
use serde::{Deserialize, Serialize};

/// State of a job, as users see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobState {
    /// Accepted, nothing dispatched yet.
    Initializing,
    /// Tasks run or wait for slots.
    Running,
    /// A new `JobMaster` finds out what is left.
    Reconciling,
    /// Ends its tasks after a failure.
    Failing,
    /// Ends its tasks because the user asked.
    Cancelling,
    /// Ended with its output published.
    Finished,
    /// Ended without output, with a cause.
    Failed,
    /// Ended without output, because the user asked.
    Canceled,
}

impl JobState {
    /// Whether the state never changes again.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Canceled)
    }

    /// The state as it is written on screens and in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initializing => "INITIALIZING",
            Self::Running => "RUNNING",
            Self::Reconciling => "RECONCILING",
            Self::Failing => "FAILING",
            Self::Cancelling => "CANCELLING",
            Self::Finished => "FINISHED",
            Self::Failed => "FAILED",
            Self::Canceled => "CANCELED",
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOutcome {
    /// Which job.
    pub job: JobId,
    /// Which run of it.
    pub run: RunId,
    /// A terminal state.
    pub state: JobState,
    /// How many times a `JobMaster` came back.
    pub recoveries: u32,
    /// Why it failed, with all causes.
    pub error: Option<String>,
    /// Folded over the accepted attempts, one per subtask.
    pub accumulators: Accumulators,
}

/// How a job stands at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStatus {
    /// Which job.
    pub job: JobId,
    /// Which run of it.
    pub run: RunId,
    /// Its state.
    pub state: JobState,
    /// What it waits for, if it waits: `workers`, `slots`, `log`, `splits`, ...
    pub waiting_for: Option<String>,
    /// Why the log cannot be written, while it cannot: recovery is degraded.
    pub degraded: Option<String>,
    /// How many times a `JobMaster` came back.
    pub recoveries: u32,
    /// Commands of former masters that workers refused, as far as this life of the `JobMaster` heard.
    #[serde(default)]
    pub refused_commands: u64,
    /// Each vertex, in the order of the graph.
    pub vertices: Vec<VertexStatus>,
}

/// How a vertex stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VertexStatus {
    /// Its name.
    pub name: String,
    /// Its decided parallelism; none while undecided.
    pub parallelism: Option<u32>,
    /// Subtasks that finished.
    pub finished: u32,
    /// Subtasks that run.
    pub running: u32,
}
