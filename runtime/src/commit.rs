//! Publishing the output of a job, once.

use regrow_protocol::{ExecutionAttemptId, RunId, StagedFile};
use serde::{Deserialize, Serialize};

use crate::SinkSpec;

/// What to make ready before the first task runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPreparation {
    /// Names the hidden directories.
    pub run: RunId,
    /// All sinks of the job.
    pub sinks: Vec<SinkSpec>,
}

/// The winners of a commit: what to publish, whatever else lies in the hidden directories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitPlan {
    /// Names the hidden directories.
    pub run: RunId,
    /// All sinks of the job.
    pub sinks: Vec<SinkSpec>,
    /// The files to publish, with the attempt that staged each, ascending by sink and final name.
    pub winners: Vec<(ExecutionAttemptId, StagedFile)>,
}
