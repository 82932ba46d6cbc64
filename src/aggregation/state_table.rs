//! States of keys, in bounded memory.

use std::sync::Arc;

use super::aggregate::Combining;
use crate::key_table::{Key, KeyTable};

/// The state of each key, as far as memory reaches.
pub(crate) struct StateTable<C: Combining> {
    combining: Arc<C>,
    table: KeyTable<C::State>,
}

/// What came of a change of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// It was made.
    Done,
    /// It was made, and the states have outgrown the table: empty it.
    Overgrown,
    /// There is no state of the key.
    NoState,
}

impl<C: Combining> StateTable<C> {
    /// Makes an empty one that takes `memory_bytes_max` at most.
    pub(crate) fn new(combining: Arc<C>, memory_bytes_max: u64) -> Self {
        Self { combining, table: KeyTable::new(memory_bytes_max) }
    }

    /// How states are combined.
    pub(crate) fn combining(&self) -> &Arc<C> {
        &self.combining
    }

    /// Changes the state of a key, if there is one.
    #[inline]
    pub(crate) fn change(
        &mut self,
        key: &Key<'_>,
        change: impl FnOnce(&C, &mut C::State),
    ) -> Changed {
        let Some(state) = self.table.find_mut(key) else { return Changed::NoState };
        let before = self.combining.heap_bytes(state);
        change(&self.combining, state);
        let after = self.combining.heap_bytes(state);
        if before == after {
            return Changed::Done;
        }
        self.table.note_heap(before, after);
        if self.table.is_overgrown() { Changed::Overgrown } else { Changed::Done }
    }

    /// Whether there is room for the state of a new key; an empty table takes any.
    pub(crate) fn has_room(&self, key: &Key<'_>, state: &C::State) -> bool {
        self.table.has_room(key, self.combining.heap_bytes(state))
    }

    /// Puts in the state of a new key.
    pub(crate) fn insert(&mut self, key: &Key<'_>, state: C::State) {
        let heap_bytes = self.combining.heap_bytes(&state);
        self.table.insert(key, state);
        self.table.note_heap(0, heap_bytes);
    }

    /// The keys and states.
    pub(crate) fn table(&self) -> &KeyTable<C::State> {
        &self.table
    }

    /// The keys and states, to be taken from or cleared.
    pub(crate) fn table_mut(&mut self) -> &mut KeyTable<C::State> {
        &mut self.table
    }
}
