//! Says again what a worker may not have heard: a connection that broke takes what was under way
//! with it, in both directions (recovery.md 4.7).

use std::collections::BTreeSet;

use regrow_protocol::{ExecutionAttemptId, Inventory, WorkerId};

use super::{Job, Phase};
use crate::{Action, Decision};

impl Job {
    /// Compares what a worker holds with what this master takes it to hold. What it was told on its
    /// newest connection is left out: its inventory may have been made before it heard of that. What
    /// is repeated does no harm.
    pub(super) fn resync(&mut self, worker: WorkerId, inventory: &Inventory, out: &mut Decision) {
        if !matches!(self.phase, Phase::Active) {
            return;
        }
        let running: BTreeSet<ExecutionAttemptId> = inventory.running.iter().copied().collect();
        let sealed = inventory.unacknowledged.iter().map(|record| record.attempt);
        let held: BTreeSet<ExecutionAttemptId> = running.iter().copied().chain(sealed).collect();
        for attempt in self.executions.perhaps_unheard_by(worker) {
            if !held.contains(&attempt) {
                self.send_again(&attempt, out);
            }
        }
        for attempt in self.executions.perhaps_ended_on(worker) {
            if !held.contains(&attempt)
                && let Some(holder) = self.executions.wound_down(&attempt)
            {
                self.workers.add_free(holder, 1);
            }
        }
        let epoch = self.epoch();
        for attempt in running {
            if attempt.epoch == epoch && self.executions.of_attempt(&attempt).is_none() {
                out.actions.push(Action::CancelTask { worker, attempt });
            }
        }
    }
}
