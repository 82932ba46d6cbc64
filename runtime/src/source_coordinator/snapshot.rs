//! The stored form of a source coordinator's state.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use regrow_protocol::{ExecutionAttemptId, Split, SplitId};
use serde::{Deserialize, Serialize};

use super::{SourceCoordinator, held_splits::HeldSplits, subtask_splits::SubtaskSplits};
use crate::split_enumerator::SplitEnumerator;

/// All of the state that does not follow from the rest of it. Only grows, as all that is stored.
#[derive(Serialize, Deserialize)]
pub(super) struct Snapshot<'a> {
    /// The checkpoint it was made for.
    pub(super) checkpoint: i64,
    splits: Option<Cow<'a, [Split]>>,
    subtasks: Vec<SubtaskSnapshot<'a>>,
}

#[derive(Serialize, Deserialize)]
struct SubtaskSnapshot<'a> {
    subtask: u32,
    pinned: Option<Cow<'a, [SplitId]>>,
    attempts: Vec<(ExecutionAttemptId, Cow<'a, HeldSplits>)>,
}

impl<'a> Snapshot<'a> {
    pub(super) fn of(coordinator: &'a SourceCoordinator, checkpoint: i64) -> Self {
        let subtask = |(subtask, splits): (&u32, &'a SubtaskSplits)| SubtaskSnapshot {
            subtask: *subtask,
            pinned: splits.pinned.as_deref().map(Cow::Borrowed),
            attempts: splits
                .attempts
                .iter()
                .map(|(attempt, held)| (*attempt, Cow::Borrowed(held)))
                .collect(),
        };
        Self {
            checkpoint,
            splits: coordinator.enumerator.as_ref().map(|e| Cow::Borrowed(e.splits())),
            subtasks: coordinator.subtasks.iter().map(subtask).collect(),
        }
    }

    /// Builds the state afresh; a split with two owners, or one that is not known, is an error.
    pub(super) fn restore(self) -> Result<SourceCoordinator, String> {
        let splits = self.splits.map(|splits| SplitEnumerator::new(splits.into_owned()));
        let mut coordinator = SourceCoordinator { enumerator: splits, subtasks: BTreeMap::new() };
        for snapshot in self.subtasks {
            snapshot.restore_into(&mut coordinator)?;
        }
        Ok(coordinator)
    }
}

impl SubtaskSnapshot<'_> {
    fn restore_into(self, coordinator: &mut SourceCoordinator) -> Result<(), String> {
        let subtask = self.subtask;
        let attempts =
            self.attempts.into_iter().map(|(attempt, held)| (attempt, held.into_owned()));
        let splits = SubtaskSplits {
            pinned: self.pinned.map(Cow::into_owned),
            attempts: attempts.collect(),
        };
        check(subtask, &splits)?;
        for split in splits.owned() {
            let taken = coordinator.enumerator.as_mut().is_some_and(|e| e.take(split, subtask));
            if !taken {
                let split = split.0;
                return Err(format!(
                    "split {split} of subtask {subtask} is not known or has another owner"
                ));
            }
        }
        if coordinator.subtasks.insert(subtask, splits).is_some() {
            return Err(format!("subtask {subtask} is there twice"));
        }
        Ok(())
    }
}

fn check(subtask: u32, splits: &SubtaskSplits) -> Result<(), String> {
    let mut pinned = BTreeSet::new();
    if !splits.pinned.iter().flatten().all(|split| pinned.insert(*split)) {
        return Err(format!("a split is pinned to subtask {subtask} twice"));
    }
    let mut seen = BTreeSet::new();
    for (attempt, held) in &splits.attempts {
        let once = held.splits().iter().all(|split| seen.insert(*split));
        if attempt.subtask != subtask || !held.is_sound() || !once {
            return Err(format!("the splits of attempt {attempt} contradict each other"));
        }
    }
    Ok(())
}
