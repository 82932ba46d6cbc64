//! What a recovery kept and what it runs again.

use regrow_protocol::{Epoch, ExecutionAttemptId, ExecutionVertexId};
use serde::{Deserialize, Serialize};

/// What one recovery decided, for people and `--json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryReport {
    /// The life that recovered.
    pub epoch: Epoch,
    /// How the life before ended, as far as it is known.
    pub previous_end: String,
    /// Each subtask of each initialized vertex that had an attempt worth a word.
    pub lines: Vec<FateLine>,
    /// What was found wrong with the log, with the position.
    pub log_damage: Option<String>,
    /// How long each phase took.
    pub phases: RecoveryPhases,
}

/// What became of one subtask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FateLine {
    /// Which one.
    pub subtask: ExecutionVertexId,
    /// The attempt that was kept, or that was lost.
    pub attempt: Option<ExecutionAttemptId>,
    /// What became of it.
    pub fate: Fate,
    /// Why.
    pub reason: String,
}

/// What became of a subtask in a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Finished, as the log says.
    KeptLog,
    /// Finished, as a report or a finish file proves; the log's tail was lost.
    KeptFile,
    /// Runs on.
    Adopted,
    /// Runs again.
    Rerun,
}

/// Time of each phase of a recovery, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryPhases {
    /// Opening and reading the log.
    pub read_log_ms: u64,
    /// Waiting for workers to report.
    pub wait_workers_ms: u64,
    /// Making the decision durable.
    pub decide_ms: u64,
}
