//! How a worker that is told to stop leaves: it takes nothing new, lets its tasks go on for a while,
//! gives back what does not end, and waits for the answers to its reports.

use std::time::Duration;

use regrow_protocol::TaskFailure;

use super::{Actions, TaskExecutor, TaskExecutorAction, executor_run::Known};
use crate::Timestamp;

/// How long a worker that leaves waits for answers to its reports after its tasks were given back.
/// What is not answered by then is reported by whoever takes its data directory over.
pub const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// A worker is leaving.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leave {
    /// When running attempts are given back.
    gives_back_at: Timestamp,
    /// When it leaves, whatever is open.
    ends_at: Timestamp,
    /// Whether it said that it is done.
    left: bool,
}

impl TaskExecutor {
    /// Begins to leave; running attempts may go on for `drain`.
    pub(super) fn leave(&mut self, now: Timestamp, drain: Duration, actions: &mut Actions) {
        if self.leave.is_some() {
            return;
        }
        let gives_back_at = now.after(drain);
        let ends_at = gives_back_at.after(FAREWELL_TIMEOUT);
        self.leave = Some(Leave { gives_back_at, ends_at, left: false });
        for attempt in self.slots.take_waiting() {
            self.runs.entry(attempt.run).or_default().note(attempt, Known::NeverStarts);
            self.report_failure(attempt, TaskFailure::Cancelled, actions);
        }
    }

    /// Gives back what still runs once its time is over, and says when all is done.
    pub(super) fn go_on_leaving(&mut self, now: Timestamp, actions: &mut Actions) {
        let Some(leave) = self.leave else { return };
        if leave.gives_back_at <= now {
            self.stop_running(|_| true, actions);
        }
        let done = self.occupied_slots() == 0 && self.unacknowledged_reports() == 0;
        if (done || leave.ends_at <= now) && !leave.left {
            self.leave = Some(Leave { left: true, ..leave });
            actions.push(TaskExecutorAction::Left);
        }
    }

    /// When a worker that leaves wants to be woken.
    pub(super) fn leave_deadlines(&self) -> impl Iterator<Item = Timestamp> + use<> {
        let open = self.leave.filter(|leave| !leave.left);
        open.into_iter().flat_map(|leave| [leave.gives_back_at, leave.ends_at])
    }
}
