//! The recorded state of a job, rebuilt from its events alone.

use super::{Job, RecoveryError, recorded::Recorded};
use crate::{JobEvent, JobSubmission};

/// A fold over the events of a run; what a live [`Job`] records must give the same.
pub struct Replay(Recorded);

impl Replay {
    /// A run of which only the submission is known.
    pub fn new(submission: JobSubmission) -> Self {
        Self(Recorded::new(submission))
    }

    /// Applies the next event.
    ///
    /// # Errors
    /// When it is a snapshot that cannot be used.
    pub fn apply(&mut self, event: &JobEvent) -> Result<(), RecoveryError> {
        self.0.replay(event).map_err(RecoveryError)
    }

    /// Whether a live job has recorded just this.
    pub fn agrees_with(&self, job: &Job) -> bool {
        self.0.equals(&job.recorded)
    }
}
