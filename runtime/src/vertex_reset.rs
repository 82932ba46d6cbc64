//! Running a subtask again, and why.

use regrow_protocol::ExecutionVertexId;
use serde::{Deserialize, Serialize};

/// One subtask that runs again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VertexReset {
    /// Which one.
    pub subtask: ExecutionVertexId,
    /// Why.
    pub reason: ResetReason,
    /// Its generation from now on: grows iff the new output may differ.
    pub generation: u32,
    /// Number of its next attempt, at least.
    pub next_attempt: u32,
    /// Failures charged to it so far.
    pub charged_failures: u32,
    /// Workers that it lost while it ran, finished outputs that were lost, and times that an input
    /// could not be reached.
    pub losses: u32,
}

/// Why a subtask runs again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResetReason {
    /// It failed by itself.
    Failed {
        /// How.
        message: String,
    },
    /// Its worker was lost while it ran.
    WorkerLost,
    /// Its output is needed, and a reader found it gone or damaged; the attempt never counts again.
    PartitionLost {
        /// What was found.
        message: String,
    },
    /// Its output is needed, and whoever holds it is not there; the attempt counts again if its
    /// holder comes back before a successor is dispatched.
    OutputMissing,
    /// It read, or would have to read, another attempt of an input that may differ.
    InputChanged,
    /// Its input was lost while it ran.
    InputLost,
    /// Its worker ended it although the job goes on.
    Cancelled,
    /// Its vertex is done but splits are left.
    SplitsLeft,
    /// Its staged output file is gone.
    StagedFileLost,
    /// It could not reach an input, which proves no loss.
    InputUnreachable {
        /// What was tried, and what was found.
        message: String,
    },
    /// The splits of its source were good for one listing only, which is void.
    ListingForgotten,
}

impl ResetReason {
    /// How many failures a reset for this reason charges to its subtask: only those of the task
    /// itself count.
    pub(crate) fn charged_failures(&self) -> u32 {
        match self {
            Self::Failed { .. } => 1,
            Self::WorkerLost
            | Self::PartitionLost { .. }
            | Self::OutputMissing
            | Self::InputChanged
            | Self::InputLost
            | Self::InputUnreachable { .. }
            | Self::Cancelled
            | Self::SplitsLeft
            | Self::StagedFileLost
            | Self::ListingForgotten => 0,
        }
    }

    /// How many losses (of workers while it ran, of outputs, of the way to an input) it adds to
    /// those of its subtask.
    pub(crate) fn losses(&self) -> u32 {
        match self {
            Self::WorkerLost | Self::PartitionLost { .. } | Self::InputUnreachable { .. } => 1,
            Self::Failed { .. }
            | Self::OutputMissing
            | Self::InputChanged
            | Self::InputLost
            | Self::Cancelled
            | Self::SplitsLeft
            | Self::StagedFileLost
            | Self::ListingForgotten => 0,
        }
    }

    /// Whether attempts before the reset can never count again.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::OutputMissing | Self::WorkerLost => false,
            Self::Failed { .. }
            | Self::PartitionLost { .. }
            | Self::InputChanged
            | Self::InputLost
            | Self::InputUnreachable { .. }
            | Self::Cancelled
            | Self::SplitsLeft
            | Self::StagedFileLost
            | Self::ListingForgotten => true,
        }
    }

    /// What was said of it, where something was.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Failed { message }
            | Self::PartitionLost { message }
            | Self::InputUnreachable { message } => Some(message),
            Self::WorkerLost
            | Self::OutputMissing
            | Self::InputChanged
            | Self::InputLost
            | Self::Cancelled
            | Self::SplitsLeft
            | Self::StagedFileLost
            | Self::ListingForgotten => None,
        }
    }

    /// The reason for people.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Failed { .. } => "failed",
            Self::WorkerLost => "its worker was lost",
            Self::PartitionLost { .. } => "its output is damaged or gone",
            Self::OutputMissing => "its output is needed and was reported by nobody",
            Self::InputChanged => "input changed",
            Self::InputLost => "its input was lost",
            Self::InputUnreachable { .. } => "its input could not be reached",
            Self::Cancelled => "its worker ended it",
            Self::SplitsLeft => "splits of its source are left",
            Self::StagedFileLost => "its staged output file is gone",
            Self::ListingForgotten => "its source is listed again",
        }
    }
}
