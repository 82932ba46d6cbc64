//! Why a run has no finished job to show.

use regrow_actors::launch::LaunchError;
use thiserror::Error;

use crate::{job_result::JobResult, run_request::Refusal};

/// Why [`LocalRunner::run`](crate::LocalRunner::run) has no finished job to show.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// Nothing ran and nothing was changed: the job, its settings or its directories must be changed
    /// first.
    #[error("{0}")]
    Refused(String),
    /// The run could not start, or could not go on. Its text says what is kept; with the same job id
    /// it can be tried again.
    #[error("the job cannot run")]
    Launch(#[from] LaunchError),
    /// The job ended without output, because it failed.
    #[error("job {} failed: {}", .0.job_id, .0.error.as_deref().unwrap_or("no cause is recorded"))]
    Failed(Box<JobResult>),
    /// The job ended without output, because it was cancelled.
    #[error("job {} was cancelled", .0.job_id)]
    Canceled(Box<JobResult>),
}

impl RunError {
    /// How the job ended, if it was accepted and ended.
    pub fn result(&self) -> Option<&JobResult> {
        match self {
            Self::Failed(result) | Self::Canceled(result) => Some(result),
            Self::Refused(_) | Self::Launch(_) => None,
        }
    }
}

impl From<Refusal> for RunError {
    fn from(Refusal(reason): Refusal) -> Self {
        Self::Refused(reason)
    }
}
