//! Hands out the splits of a source.

mod held_splits;
mod snapshot;
mod subtask_splits;

use std::collections::{BTreeMap, BTreeSet};

use regrow_protocol::{Epoch, ExecutionAttemptId, Split, SplitId, decode, encode};

use crate::{
    CoordinatorDelta, JobGraph, OperatorCoordinator, Reply, split_enumerator::SplitEnumerator,
};
use held_splits::HeldSplits;
use snapshot::Snapshot;
use subtask_splits::SubtaskSplits;

/// The coordinator of a source vertex: hands out splits in order, one per request.
///
/// Invariant: each split is left to hand out, or owned by one subtask, within which at most one
/// attempt holds it. Memory is in proportion to splits and attempts; a request costs O(log n).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceCoordinator {
    /// None before discovery.
    enumerator: Option<SplitEnumerator>,
    /// Subtasks that own splits, or of which it is known that they own none.
    subtasks: BTreeMap<u32, SubtaskSplits>,
}

impl SourceCoordinator {
    /// A coordinator that was never started.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Checks that there are splits to work with.
    pub(crate) fn check(splits: &[Split]) -> Result<(), String> {
        if splits.len() > JobGraph::SPLITS_MAX as usize {
            return Err(format!(
                "the source has {} splits, and at most {} are allowed: make them larger",
                splits.len(),
                JobGraph::SPLITS_MAX
            ));
        }
        for (expected, split) in (0..).zip(splits) {
            if split.id.0 != expected {
                return Err(format!(
                    "the source numbers split {expected} as {}: splits are numbered from 0",
                    split.id.0
                ));
            }
        }
        Ok(())
    }

    fn held(&self, attempt: ExecutionAttemptId) -> Option<&HeldSplits> {
        self.subtasks.get(&attempt.subtask)?.attempts.get(&attempt)
    }

    fn pinned_ids(&self, subtask: u32) -> Option<&[SplitId]> {
        self.subtasks.get(&subtask)?.pinned.as_deref()
    }

    /// Whether `attempt` may come to hold exactly `splits`.
    fn may_hold(&self, attempt: ExecutionAttemptId, splits: &[SplitId]) -> bool {
        let Some(enumerator) = &self.enumerator else { return false };
        if self.pinned_ids(attempt.subtask).is_some_and(|pinned| pinned != splits) {
            return false;
        }
        let others = self.held_by_others(attempt);
        let mut seen = BTreeSet::new();
        splits.iter().all(|&split| {
            let free = enumerator.is_left(split)
                || (enumerator.is_owned_by(split, attempt.subtask) && !others.contains(&split));
            free && seen.insert(split)
        })
    }

    fn held_by_others(&self, attempt: ExecutionAttemptId) -> BTreeSet<SplitId> {
        let subtask = self.subtasks.get(&attempt.subtask);
        subtask.map(|subtask| subtask.held_by_others(attempt)).unwrap_or_default()
    }

    fn hand_out(&mut self, attempt: ExecutionAttemptId, splits: &[SplitId], request: u64) {
        let Some(enumerator) = &mut self.enumerator else { return };
        let subtask = self.subtasks.entry(attempt.subtask).or_default();
        let held = subtask.attempts.entry(attempt).or_default();
        if splits.is_empty() {
            held.close();
        }
        for &split in splits {
            if enumerator.take(split, attempt.subtask) {
                held.hand_out(request, split);
            }
        }
    }

    /// Gives `attempt` exactly `splits`; what it held beside them goes back.
    fn assign_exactly(&mut self, attempt: ExecutionAttemptId, splits: &[SplitId]) {
        if !self.may_hold(attempt, splits) {
            return;
        }
        self.give_back(attempt);
        let Some(enumerator) = &mut self.enumerator else { return };
        for &split in splits {
            enumerator.take(split, attempt.subtask);
        }
        let subtask = self.subtasks.entry(attempt.subtask).or_default();
        subtask.attempts.insert(attempt, HeldSplits::exactly(splits.to_vec()));
    }

    fn give_back(&mut self, attempt: ExecutionAttemptId) {
        self.free(attempt.subtask, |subtask| subtask.release(attempt));
    }

    fn free(&mut self, id: u32, give_up: impl FnOnce(&mut SubtaskSplits) -> Vec<SplitId>) {
        let Some(enumerator) = &mut self.enumerator else { return };
        let subtask = self.subtasks.entry(id).or_default();
        for split in give_up(subtask) {
            enumerator.give_back(split);
        }
        if subtask.is_empty() {
            self.subtasks.remove(&id);
        }
    }
}

impl OperatorCoordinator for SourceCoordinator {
    fn start(&self) -> bool {
        self.enumerator.is_none()
    }

    fn splits_discovered(
        &self,
        _epoch: Epoch,
        splits: Vec<Split>,
    ) -> Result<CoordinatorDelta, String> {
        Self::check(&splits)?;
        Ok(CoordinatorDelta::SplitsDiscovered { splits })
    }

    fn handle_event(&self, attempt: ExecutionAttemptId, request: u64) -> Reply {
        assert!(
            self.enumerator.is_some(),
            "{attempt} asks for a split that was not discovered yet"
        );
        let nothing = Reply { delta: None, split: None };
        let split = |id| self.enumerator.as_ref().and_then(|e| e.get(id)).cloned();
        if let Some(held) = self.held(attempt) {
            if let Some(answer) = held.answer(request) {
                return Reply { delta: None, split: split(answer) };
            }
            if held.is_closed() {
                return nothing;
            }
        }
        if self.pinned_ids(attempt.subtask).is_some() {
            return nothing;
        }
        // The end is recorded too: splits may come back, and who was told the end has none of them.
        let next = self.enumerator.as_ref().and_then(SplitEnumerator::first_left).cloned();
        let splits = next.iter().map(|split| split.id).collect();
        let delta = CoordinatorDelta::SplitsAssigned { attempt, splits, request: Some(request) };
        Reply { delta: Some(delta), split: next }
    }

    fn subtask_ready(&self, attempt: ExecutionAttemptId) -> Option<CoordinatorDelta> {
        let splits = self.pinned_ids(attempt.subtask)?.to_vec();
        let news = self.held(attempt).is_none() && self.may_hold(attempt, &splits);
        news.then_some(CoordinatorDelta::SplitsAssigned { attempt, splits, request: None })
    }

    fn subtask_failed(&self, attempt: ExecutionAttemptId) -> Option<CoordinatorDelta> {
        self.held(attempt)?;
        Some(CoordinatorDelta::SplitsReturned { attempts: vec![attempt] })
    }

    fn subtask_reset(
        &self,
        subtask: u32,
        _checkpoint: i64,
        finished: Option<ExecutionAttemptId>,
    ) -> Option<CoordinatorDelta> {
        let present = self.subtasks.get(&subtask);
        let returns = present.is_some_and(|present| !present.attempts.is_empty());
        let pins = finished.is_some() && present.is_none_or(|present| present.pinned.is_none());
        (returns || pins)
            .then_some(CoordinatorDelta::SubtaskReset { subtask, pinned_from: finished })
    }

    fn pinned(&self, subtask: u32) -> Option<Vec<Split>> {
        let enumerator = self.enumerator.as_ref()?;
        let pinned = self.pinned_ids(subtask)?;
        Some(pinned.iter().filter_map(|&id| enumerator.get(id).cloned()).collect())
    }

    fn claim(&self, attempt: ExecutionAttemptId, splits: &[SplitId]) -> Option<CoordinatorDelta> {
        let splits = splits.to_vec();
        self.may_hold(attempt, &splits).then_some(CoordinatorDelta::SplitsAssigned {
            attempt,
            splits,
            request: None,
        })
    }

    fn holds(&self, attempt: ExecutionAttemptId, splits: &[SplitId]) -> bool {
        match self.held(attempt) {
            Some(held) => held.splits() == splits,
            None => {
                splits.is_empty()
                    && self.pinned_ids(attempt.subtask).is_none_or(<[SplitId]>::is_empty)
            }
        }
    }

    fn is_exhausted(&self) -> bool {
        self.enumerator.as_ref().is_some_and(SplitEnumerator::is_exhausted)
    }

    fn discovered_bytes(&self) -> Option<u64> {
        self.enumerator.as_ref().map(SplitEnumerator::total_bytes)
    }

    #[expect(clippy::expect_used, reason = "plain structs of numbers and bytes always encode")]
    fn checkpoint_coordinator(&self, checkpoint: i64) -> Vec<u8> {
        encode(&Snapshot::of(self, checkpoint)).expect("a snapshot holds numbers and bytes only")
    }

    fn reset_to_checkpoint(&mut self, checkpoint: i64, state: &[u8]) -> Result<(), String> {
        let snapshot: Snapshot<'_> =
            decode(state).map_err(|error| format!("no snapshot of a source: {error}"))?;
        if snapshot.checkpoint != checkpoint {
            let found = snapshot.checkpoint;
            return Err(format!("a snapshot of checkpoint {found}, not {checkpoint}"));
        }
        *self = snapshot.restore()?;
        Ok(())
    }

    fn supports_batch_snapshot(&self) -> bool {
        true
    }

    fn forget(&self) -> Option<CoordinatorDelta> {
        None
    }

    fn may_have_been_read_in(&self, _epoch: Epoch) -> bool {
        true
    }

    fn apply_delta(&mut self, delta: &CoordinatorDelta) {
        match delta {
            // Listed twice, the first list counts: splits of it may be out.
            CoordinatorDelta::SplitsDiscovered { splits } => {
                self.enumerator.get_or_insert_with(|| SplitEnumerator::new(splits.clone()));
            }
            CoordinatorDelta::SplitsAssigned { attempt, splits, request: Some(request) } => {
                self.hand_out(*attempt, splits, *request);
            }
            CoordinatorDelta::SplitsAssigned { attempt, splits, request: None } => {
                self.assign_exactly(*attempt, splits);
            }
            CoordinatorDelta::SplitsReturned { attempts } => {
                for attempt in attempts {
                    self.give_back(*attempt);
                }
            }
            CoordinatorDelta::SubtaskReset { subtask, pinned_from } => {
                self.free(*subtask, |splits| splits.reset(*pinned_from));
            }
            // Of sources of another kind.
            CoordinatorDelta::ListingMade { .. } | CoordinatorDelta::ListingForgotten { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
