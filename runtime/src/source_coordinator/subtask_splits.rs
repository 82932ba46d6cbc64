//! What one subtask owns.

use std::collections::{BTreeMap, BTreeSet};

use regrow_protocol::{ExecutionAttemptId, SplitId};

use super::held_splits::HeldSplits;

/// The splits that a subtask owns: those that its attempts hold, and those pinned to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SubtaskSplits {
    /// What a finished attempt whose output was lost had read, in its order: each later attempt
    /// reads exactly this.
    pub(super) pinned: Option<Vec<SplitId>>,
    /// Per attempt that did not give its splits back, what it holds.
    pub(super) attempts: BTreeMap<ExecutionAttemptId, HeldSplits>,
}

impl SubtaskSplits {
    /// What attempts other than `attempt` hold.
    pub(super) fn held_by_others(&self, attempt: ExecutionAttemptId) -> BTreeSet<SplitId> {
        let others = self.attempts.iter().filter(|(other, _)| **other != attempt);
        others.flat_map(|(_, held)| held.splits().iter().copied()).collect()
    }

    /// All that the subtask owns.
    pub(super) fn owned(&self) -> BTreeSet<SplitId> {
        let held = self.attempts.values().flat_map(HeldSplits::splits);
        held.chain(self.pinned.iter().flatten()).copied().collect()
    }

    /// Takes from `attempt` what it holds, and returns what is not pinned to the subtask.
    pub(super) fn release(&mut self, attempt: ExecutionAttemptId) -> Vec<SplitId> {
        let Some(held) = self.attempts.remove(&attempt) else { return Vec::new() };
        let pinned: BTreeSet<SplitId> = self.pinned.iter().flatten().copied().collect();
        held.splits().iter().copied().filter(|split| !pinned.contains(split)).collect()
    }

    /// Takes from all attempts what they hold, pins what `pinned_from` had read, and returns what
    /// the subtask owns no longer.
    pub(super) fn reset(&mut self, pinned_from: Option<ExecutionAttemptId>) -> Vec<SplitId> {
        let mut freed = self.owned();
        if let Some(finished) = pinned_from {
            match self.attempts.remove(&finished) {
                Some(held) => self.pinned = Some(held.splits().to_vec()),
                // It never asked, and so it read nothing: nor may the next one.
                None => {
                    self.pinned.get_or_insert_default();
                }
            }
        }
        self.attempts.clear();
        for split in self.pinned.iter().flatten() {
            freed.remove(split);
        }
        freed.into_iter().collect()
    }

    /// Whether there is nothing to remember of the subtask.
    pub(super) fn is_empty(&self) -> bool {
        self.pinned.is_none() && self.attempts.is_empty()
    }
}
