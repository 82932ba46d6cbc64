//! Why an attempt did not finish.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::PartitionId;

/// Why an attempt did not finish; each variant is one action of the `JobMaster`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
pub enum TaskFailure {
    /// User code returned an error or an input is wrong: charge the task, try again.
    #[error("{message}")]
    Task {
        /// What was tried and what was found, with all causes.
        message: String,
    },
    /// User code panicked: charge the task, try again.
    #[error("panicked at {location}: {message}")]
    Panicked {
        /// Text of the panic.
        message: String,
        /// `file:line:column`.
        location: String,
    },
    /// No try can succeed (bad input data, builder not deterministic): fail the job at once.
    #[error("{message}")]
    Unrecoverable {
        /// What was tried and what was found, with all causes.
        message: String,
    },
    /// A partition that the attempt read is gone or damaged: run its producer again, charge nobody.
    #[error("partition {partition} cannot be read: {reason}")]
    InputLost {
        /// Which one.
        partition: PartitionId,
        /// What was found.
        reason: String,
    },
    /// A partition that the attempt reads cannot be reached, which proves no loss: charge nobody,
    /// keep the producer, and try again after a pause.
    #[error("partition {partition} cannot be reached: {reason}")]
    InputUnreachable {
        /// Which one.
        partition: PartitionId,
        /// What was tried, and what was found.
        reason: String,
    },
    /// The attempt was told to stop.
    #[error("cancelled")]
    Cancelled,
}

impl TaskFailure {
    /// A failure of user code, or of the task's own input or output, that another try may cure.
    pub fn task(message: impl Into<String>) -> Self {
        Self::Task { message: message.into() }
    }

    /// A failure that no other try can cure.
    pub fn unrecoverable(message: impl Into<String>) -> Self {
        Self::Unrecoverable { message: message.into() }
    }
}
