//! What a data directory holds of a run.

use std::path::PathBuf;

use regrow_protocol::{ExecutionAttemptId, FinishRecord};

/// What a data directory holds of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunInventory {
    /// One record per attempt that is proven to have finished and whose outputs are all there,
    /// ascending by attempt.
    pub finished: Vec<FinishRecord>,
    /// What is there but proves nothing, or was there and is lost; kept until it is released.
    pub damaged: Vec<Damage>,
}

/// Something that is not as it was sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Whose it is, where that can be told.
    pub attempt: Option<ExecutionAttemptId>,
    /// Which file.
    pub path: PathBuf,
    /// What was found.
    pub reason: String,
}
