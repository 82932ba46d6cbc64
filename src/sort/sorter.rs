//! Sorts records in memory, and on disk what does not fit.

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

use super::{
    arena::{Arena, Full},
    entry::Entry,
    merge::Merge,
    runs::Runs,
};

/// The part of the memory that is for merging runs.
const MERGE_SHARE: u64 = 4;

/// Takes entries in any order.
#[derive(Debug)]
pub(super) struct Sorter {
    arena: Arena,
    runs: Runs,
}

/// Gives entries in order.
#[derive(Debug)]
pub(super) enum Sorted {
    /// All fitted into memory.
    InMemory {
        /// Sorted.
        arena: Arena,
        /// The next entry.
        next: usize,
    },
    /// From runs.
    Merged {
        /// What is left of them.
        merge: Merge,
        /// Whether the current entry was given out.
        given: bool,
    },
}

impl Sorter {
    /// Takes about `memory_bytes`.
    pub(super) fn new(memory_bytes: u64) -> Self {
        let for_merging = memory_bytes / MERGE_SHARE;
        Self { arena: Arena::new(memory_bytes - for_merging), runs: Runs::new(for_merging) }
    }

    /// Adds an entry.
    #[inline]
    pub(super) fn add(
        &mut self,
        entry: Entry<'_>,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        if self.arena.add(entry).is_ok() {
            return Ok(());
        }
        self.runs.spill(&mut self.arena, context)?;
        self.arena
            .add(entry)
            .map_err(|Full| TaskFailure::task("an empty sorter has no room for a single record"))
    }

    /// All entries were added.
    pub(super) fn finish(mut self, context: &mut dyn TaskContext) -> Result<Sorted, TaskFailure> {
        if self.runs.is_empty() {
            self.arena.sort();
            return Ok(Sorted::InMemory { arena: self.arena, next: 0 });
        }
        if !self.arena.is_empty() {
            self.runs.spill(&mut self.arena, context)?;
        }
        drop(self.arena);
        let merge = self.runs.merge(context)?;
        Ok(Sorted::Merged { merge, given: false })
    }
}

impl Sorted {
    /// The next record; none at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, TaskFailure> {
        match self {
            Self::InMemory { arena, next } => {
                let entry = arena.get(*next);
                *next += 1;
                Ok(entry.map(|entry| entry.record))
            }
            Self::Merged { merge, given } => {
                if std::mem::replace(given, true) {
                    merge.advance()?;
                }
                Ok(merge.entry().map(|entry| entry.record))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_context::TestContext;

    fn sorted(entries: &[(Vec<u8>, Vec<u8>)], memory_bytes: u64) -> Vec<Vec<u8>> {
        let mut context = TestContext::new(0);
        let mut sorter = Sorter::new(memory_bytes);
        for (key, record) in entries {
            sorter.add(Entry { key, record }, &mut context).unwrap();
        }
        let mut result = sorter.finish(&mut context).unwrap();
        let mut found = Vec::new();
        while let Some(record) = result.next().unwrap() {
            found.push(record.to_vec());
        }
        assert_eq!(result.next().unwrap(), None);
        drop(result);
        let directory = context.spill_directory().unwrap();
        assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "runs are left");
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_records_in_any_memory_come_as_the_standard_sort_has_them(
            mut entries in proptest::collection::vec((
                proptest::collection::vec(0_u8..4, 0..11),
                proptest::collection::vec(any::<u8>(), 1..200),
            ), 0..200),
            memory_bytes in prop_oneof![Just(1_u64), 1..10_000_u64, Just(1 << 20)],
        ) {
            let found = sorted(&entries, memory_bytes);
            entries.sort();
            let expected: Vec<Vec<u8>> = entries.into_iter().map(|(_, record)| record).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn hundreds_of_runs_are_merged_in_several_passes() {
        let entry = |number: u32| {
            let key = number.wrapping_mul(2_654_435_769).to_be_bytes();
            (key.to_vec(), key.repeat(250))
        };
        let mut entries: Vec<_> = (0..300).map(entry).collect();
        let found = sorted(&entries, 1);
        entries.sort();
        assert!(found.iter().eq(entries.iter().map(|(_, record)| record)));
    }

    #[test]
    fn a_cancelled_attempt_stops_at_its_next_spill() {
        let mut context = TestContext::new(0);
        let mut sorter = Sorter::new(1);
        let entry = Entry { key: b"key", record: &[7; 2000] };
        sorter.add(entry, &mut context).unwrap();
        context.cancelled = true;
        let stopped = sorter.add(entry, &mut context);
        assert_eq!(stopped, Err(TaskFailure::Cancelled));
    }
}
