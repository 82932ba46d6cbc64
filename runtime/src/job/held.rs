//! Actions that wait until their records are durable.

use std::collections::BTreeMap;

use regrow_protocol::{ExecutionAttemptId, JobVertexId};

use crate::{Action, Lsn};

/// Something to do once a position is durable.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HeldAction {
    /// Carry this out.
    Act(Action),
    /// Dispatch an attempt, if this very dispatch is still wanted.
    Submit { attempt: ExecutionAttemptId, ticket: u64 },
    /// Release the outputs of a vertex, if they are still unneeded.
    ReleaseOutputs(JobVertexId),
    /// Begin to act upon the recovery decision.
    Activate,
}

/// Actions that wait, oldest position first.
#[derive(Debug, Default)]
pub(super) struct Held {
    waiting: BTreeMap<(Lsn, u64), HeldAction>,
    count: u64,
}

impl Held {
    /// Holds `action` until everything up to `lsn` is durable.
    pub(super) fn push(&mut self, lsn: Lsn, action: HeldAction) {
        self.waiting.insert((lsn, self.count), action);
        self.count += 1;
    }

    /// The next action that need not wait any longer.
    pub(super) fn pop(&mut self, durable: Lsn) -> Option<HeldAction> {
        let entry = self.waiting.first_entry().filter(|entry| entry.key().0 <= durable)?;
        Some(entry.remove())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_come_out_by_position_then_age() {
        let mut held = Held::default();
        let submit = |vertex| HeldAction::ReleaseOutputs(JobVertexId(vertex));
        held.push(Lsn(2), submit(0));
        held.push(Lsn(1), submit(1));
        held.push(Lsn(1), submit(2));
        assert_eq!(held.pop(Lsn(0)), None);
        assert_eq!(held.pop(Lsn(1)), Some(submit(1)));
        assert_eq!(held.pop(Lsn(1)), Some(submit(2)));
        assert_eq!(held.pop(Lsn(1)), None);
        assert_eq!(held.pop(Lsn(9)), Some(submit(0)));
        assert!(held.is_empty());
    }
}
