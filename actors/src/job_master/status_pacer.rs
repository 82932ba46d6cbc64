//! How often a status is shown.

use std::time::Duration;

use regrow_runtime::{Job, JobStatus};
use tokio::time::Instant;

/// Least time between two statuses: each costs a look at every vertex.
const PAUSE: Duration = Duration::from_millis(50);

/// Lets a status out when it differs from the one before, and not too often.
#[derive(Default)]
pub(super) struct StatusPacer {
    looked: Option<Instant>,
    shown: Option<JobStatus>,
    armed: bool,
}

/// What to do about the status now.
pub(super) enum Look {
    /// Show it.
    Show(JobStatus),
    /// Look again after this time.
    Later(Duration),
    /// Nothing: it has not changed, or a later look is arranged.
    Nothing,
}

impl StatusPacer {
    /// Something may have changed.
    pub(super) fn look(&mut self, job: &Job, now: Instant) -> Look {
        if self.armed {
            return Look::Nothing;
        }
        let rest = self.looked.map(|looked| PAUSE.saturating_sub(now.duration_since(looked)));
        if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
            self.armed = true;
            return Look::Later(rest);
        }
        self.looked = Some(now);
        let status = job.status();
        if self.shown.as_ref() == Some(&status) {
            return Look::Nothing;
        }
        self.shown = Some(status.clone());
        Look::Show(status)
    }

    /// The arranged look is now.
    pub(super) fn disarm(&mut self) {
        self.armed = false;
    }
}
