//! States that outgrow memory: sorted runs on disk, merged at the end.

use std::sync::Arc;

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

use super::{aggregate::Combining, state_table::StateTable};
use crate::{
    cancel_check::CancelCheck,
    sort::{Merge, Runs},
};

/// Which part of a table's memory the merge of its runs may take.
const MERGE_SHARE: u64 = 2;

/// What the state of a single key may take even where a task was granted less.
const STATE_BYTES_MIN: u64 = 1 << 20;

/// Sorted runs of (key, state) in the spill directory of an attempt.
pub(crate) struct SortedStates<C> {
    combining: Arc<C>,
    runs: Runs,
    state_bytes_max: u64,
}

impl<C: Combining> SortedStates<C> {
    /// Makes one without runs, for a table that takes `memory_bytes`.
    pub(crate) fn new(combining: Arc<C>, memory_bytes: u64) -> Self {
        let runs = Runs::new(memory_bytes / MERGE_SHARE);
        Self { combining, runs, state_bytes_max: memory_bytes.max(STATE_BYTES_MIN) }
    }

    /// Whether nothing was spilled.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Writes the content of a table as a run and clears it.
    pub(crate) fn spill(
        &mut self,
        states: &mut StateTable<C>,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let mut run = self.runs.begin(context)?;
        let mut check = CancelCheck::default();
        let mut bytes = Vec::new();
        for (key, state) in states.table().sorted() {
            check.count(context)?;
            bytes.clear();
            self.combining.write(state, &mut bytes)?;
            run.write(key, &bytes)?;
        }
        states.table_mut().clear();
        self.runs.end(run, context)
    }

    /// Begins to merge all runs, of which there is at least one; their disk space is free when the
    /// merge is dropped.
    pub(crate) fn merge(
        &mut self,
        context: &mut dyn TaskContext,
    ) -> Result<StateMerge<C>, TaskFailure> {
        Ok(StateMerge {
            combining: Arc::clone(&self.combining),
            entries: self.runs.merge(context)?,
            key: Vec::new(),
            state_bytes_max: self.state_bytes_max,
            check: CancelCheck::default(),
        })
    }
}

/// Runs that are being merged.
pub(crate) struct StateMerge<C> {
    combining: Arc<C>,
    entries: Merge,
    key: Vec<u8>,
    state_bytes_max: u64,
    check: CancelCheck,
}

impl<C: Combining> StateMerge<C> {
    /// The key of the state that was given last.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The state of the next key, ascending, of all runs; none at the end.
    pub(crate) fn advance(
        &mut self,
        context: &mut dyn TaskContext,
    ) -> Result<Option<C::State>, TaskFailure> {
        let Some(first) = self.entries.entry() else { return Ok(None) };
        self.key.clear();
        self.key.extend_from_slice(first.key);
        let mut state = self.combining.read(first.record)?;
        self.go_on(context)?;
        while let Some(next) = self.entries.entry()
            && next.key == self.key
        {
            self.combining.merge(&mut state, self.combining.read(next.record)?);
            self.check_size(&state)?;
            self.go_on(context)?;
        }
        Ok(Some(state))
    }

    fn go_on(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.check.count(context)?;
        self.entries.advance()
    }

    fn check_size(&self, state: &C::State) -> Result<(), TaskFailure> {
        let bytes = self.combining.heap_bytes(state) as u64;
        if bytes <= self.state_bytes_max {
            return Ok(());
        }
        Err(TaskFailure::unrecoverable(format!(
            "the state of a single key has grown to about {bytes} bytes, and may take {}, half the \
             memory of its task: give tasks more by taskmanager.memory.task.size, or keep less per key",
            self.state_bytes_max
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{aggregation::count::Count, key_table::Key, test_context::TestContext};

    #[test]
    fn many_runs_give_each_key_once_in_order() {
        let mut context = TestContext::new(0);
        let count = Arc::new(Count);
        let mut sorted = SortedStates::new(Arc::clone(&count), 1);
        let mut expected = BTreeMap::new();
        for round in 0..130 {
            let mut states = StateTable::new(Arc::clone(&count), u64::MAX);
            for number in (round % 7..200_usize).step_by(3) {
                let key = format!("{number:x} {}", "x".repeat(number % 30));
                states.insert(&Key::new(key.as_bytes()), round as u64);
                *expected.entry(key.into_bytes()).or_insert(0) += round as u64;
            }
            sorted.spill(&mut states, &mut context).unwrap();
            assert!(states.table().is_empty());
        }
        let mut found = Vec::new();
        let mut merge = sorted.merge(&mut context).unwrap();
        while let Some(count) = merge.advance(&mut context).unwrap() {
            found.push((merge.key().to_vec(), count));
        }
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        let directory = context.spill_directory().unwrap();
        assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0);
    }
}
