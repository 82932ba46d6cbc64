//! The rows of one side by key, in bounded memory.

use super::{
    row::Row,
    row_arena::{RowArena, RowList, Rows},
};
use crate::key_table::{Key, KeyTable};

/// Rows by key. Those of a key stay in the order in which they came.
pub(super) struct RowTable {
    lists: KeyTable<RowList>,
    rows: RowArena,
}

impl RowTable {
    /// Makes an empty one that takes `memory_bytes_max` at most, or 128 KiB if that is more.
    pub(super) fn new(memory_bytes_max: u64) -> Self {
        let lists = KeyTable::new(memory_bytes_max);
        let rows = RowArena::new(lists.memory_bytes_max());
        Self { lists, rows }
    }

    /// Puts in a row, if there is room; an empty table takes any.
    pub(super) fn push(&mut self, Row { key, record }: &Row<'_>) -> bool {
        let before = self.rows.memory_bytes();
        let growth = self.rows.growth(record);
        if !self.lists.is_empty() && growth > 0 && !self.lists.has_heap_room(growth) {
            return false;
        }
        if let Some(list) = self.lists.find_mut(key) {
            self.rows.append(list, record);
        } else if self.lists.has_room(key, growth) {
            let list = self.rows.begin(record);
            self.lists.insert(key, list);
        } else {
            return false;
        }
        self.lists.note_heap(before, self.rows.memory_bytes());
        true
    }

    /// The rows of a key; none if there is no such row.
    #[inline]
    pub(super) fn rows(&self, key: &Key<'_>) -> Option<Rows<'_>> {
        Some(self.rows.rows(*self.lists.find(key)?))
    }

    /// All keys with their rows, in an order that is the same after the same calls.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Rows<'_>)> {
        self.lists.iter().map(|(key, _, list)| (key, self.rows.rows(*list)))
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.lists.clear();
        self.rows.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn rows_are_found_by_key_in_their_order_until_memory_is_full(
            rows in proptest::collection::vec((0_u8..40, 0_usize..4_000), 0..400),
        ) {
            let mut table = RowTable::new(1);
            let mut expected = BTreeMap::<Vec<u8>, Vec<Vec<u8>>>::new();
            let mut bytes = 0;
            for (number, (key, length)) in rows.into_iter().enumerate() {
                let key = vec![key; usize::from(key)];
                let row = vec![number.to_le_bytes()[0]; length];
                if !table.push(&Row::new(&key, &row)) {
                    prop_assert!(bytes > 32 << 10, "{} bytes were too many", bytes);
                    break;
                }
                bytes += length;
                prop_assert!(table.lists.memory_bytes() <= 128 << 10);
                expected.entry(key).or_default().push(row);
            }
            for key in 0..40_u8 {
                let key = vec![key; usize::from(key)];
                let found = table.rows(&Key::new(&key));
                let found = found.map(|rows| rows.map(<[u8]>::to_vec).collect::<Vec<_>>());
                prop_assert_eq!(found.as_ref(), expected.get(&key));
            }
            prop_assert_eq!(table.iter().count(), expected.len());
        }
    }

    #[test]
    fn an_empty_table_takes_any_row() {
        let mut table = RowTable::new(1);
        let (key, row) = (vec![1; 300 << 10], vec![2; 1 << 20]);
        assert!(table.push(&Row::new(&key, &row)));
        assert!(!table.push(&Row::new(&key, &row)));
        assert_eq!(table.rows(&Key::new(&key)).unwrap().collect::<Vec<_>>(), [&row[..]]);
        table.clear();
        assert!(table.push(&Row::new(b"a", &row)));
    }
}
