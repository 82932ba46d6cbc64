//! States that outgrow memory: sorted runs on disk, merged at the end.

use std::sync::Arc;

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

use super::{aggregate::Combining, state_table::StateTable};
use crate::{
    cancel_check::CancelCheck,
    spill::{EntryMerge, EntryWriter, SpillFile, buffer_bytes},
};

/// Runs that are merged at once: each has a file open and a buffer.
const RUNS_MAX: usize = 64;

/// What the state of a single key may take even where a task was granted less.
const STATE_BYTES_MIN: usize = 1 << 20;

/// Sorted runs of (key, state) in the spill directory of an attempt.
pub(crate) struct SortedStates<C> {
    combining: Arc<C>,
    memory_bytes: usize,
    runs: Vec<SpillFile>,
    written: u64,
}

impl<C: Combining> SortedStates<C> {
    /// Makes one without runs; merging them takes at most `memory_bytes`, or little more than
    /// 256 KiB.
    pub(crate) fn new(combining: Arc<C>, memory_bytes: u64) -> Self {
        let memory_bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
        Self { combining, memory_bytes, runs: Vec::new(), written: 0 }
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
        if self.runs.len() >= RUNS_MAX {
            self.compact(context)?;
        }
        let mut run = self.begin(context)?;
        let mut bytes = Vec::new();
        for (key, state) in states.table().sorted() {
            bytes.clear();
            self.combining.write(state, &mut bytes)?;
            run.write(key, &bytes)?;
        }
        self.runs.push(run.finish()?);
        states.table_mut().clear();
        Ok(())
    }

    /// Begins to merge all runs; their disk space is free when the merge is dropped.
    pub(crate) fn merge(&mut self) -> Result<StateMerge<C>, TaskFailure> {
        let buffer_bytes = self.buffer_bytes();
        Ok(StateMerge {
            combining: Arc::clone(&self.combining),
            entries: EntryMerge::new(self.runs.drain(..), buffer_bytes)?,
            key: Vec::new(),
            state_bytes_max: self.memory_bytes.max(STATE_BYTES_MIN),
            check: CancelCheck::default(),
        })
    }

    /// Merges all runs into one.
    fn compact(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let mut merged = self.begin(context)?;
        let mut merge = self.merge()?;
        let mut bytes = Vec::new();
        while let Some(state) = merge.advance(context)? {
            bytes.clear();
            self.combining.write(&state, &mut bytes)?;
            merged.write(merge.key(), &bytes)?;
        }
        self.runs.push(merged.finish()?);
        Ok(())
    }

    fn begin(&mut self, context: &mut dyn TaskContext) -> Result<EntryWriter, TaskFailure> {
        self.written += 1;
        let name = format!("states-{}.run", self.written);
        EntryWriter::create(context.spill_directory()?, &name, self.buffer_bytes())
    }

    fn buffer_bytes(&self) -> usize {
        buffer_bytes(self.memory_bytes, RUNS_MAX)
    }
}

/// Runs that are being merged.
pub(crate) struct StateMerge<C> {
    combining: Arc<C>,
    entries: EntryMerge,
    key: Vec<u8>,
    state_bytes_max: usize,
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
        let Some((key, value)) = self.entries.entry() else { return Ok(None) };
        self.key.clear();
        self.key.extend_from_slice(key);
        let mut state = self.combining.read(value)?;
        self.go_on(context)?;
        while let Some((key, value)) = self.entries.entry()
            && key == self.key
        {
            self.combining.merge(&mut state, self.combining.read(value)?);
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
        let bytes = self.combining.heap_bytes(state);
        if bytes <= self.state_bytes_max {
            return Ok(());
        }
        Err(TaskFailure::unrecoverable(format!(
            "the state of a single key has grown to about {bytes} bytes, and half the memory of its \
             task is {}: give tasks more by taskmanager.memory.task.size, or keep less per key",
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
    fn more_runs_than_merge_at_once_give_each_key_once_in_order() {
        let mut context = TestContext::new(0);
        let count = Arc::new(Count);
        let mut sorted = SortedStates::new(Arc::clone(&count), 1);
        let mut expected = BTreeMap::new();
        for round in 0..2 * RUNS_MAX + 3 {
            let mut states = StateTable::new(Arc::clone(&count), u64::MAX);
            for number in (round % 7..200).step_by(3) {
                let key = format!("{number:x} {}", "x".repeat(number % 30));
                states.insert(&Key::new(key.as_bytes()), round as u64);
                *expected.entry(key.into_bytes()).or_insert(0) += round as u64;
            }
            sorted.spill(&mut states, &mut context).unwrap();
            assert!(states.table().is_empty());
        }
        let mut found = Vec::new();
        let mut merge = sorted.merge().unwrap();
        while let Some(count) = merge.advance(&mut context).unwrap() {
            found.push((merge.key().to_vec(), count));
        }
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        let directory = context.spill_directory().unwrap();
        assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0);
    }
}
