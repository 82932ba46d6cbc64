//! Values per key, in bounded memory.

mod slot;

use hashbrown::{HashTable, hash_table::Entry};

use self::slot::Slot;

pub(crate) use self::slot::Key;

/// Values per key. A key that is present costs one look-up and no allocation; keys up to 15 bytes
/// lie in the table itself.
pub(crate) struct KeyTable<V> {
    table: HashTable<Slot<V>>,
    long_keys: Vec<u8>,
    /// What the values take elsewhere, as their owner says.
    heap_bytes: usize,
    memory_bytes_max: usize,
}

/// Keys that a table makes room for at its start.
const KEYS_MIN: usize = 512;

/// Memory that a table takes at least: below this it would be emptied after every few keys.
const MEMORY_BYTES_MIN: usize = 128 << 10;

/// What a slot takes while the table is read in order of keys: a reference.
const ORDER_BYTES: usize = size_of::<usize>();

impl<V> KeyTable<V> {
    /// Makes an empty table that takes `memory_bytes_max` at most, growth included, but never less
    /// than 128 KiB.
    pub(crate) fn new(memory_bytes_max: u64) -> Self {
        Self {
            table: HashTable::with_capacity(KEYS_MIN),
            long_keys: Vec::new(),
            heap_bytes: 0,
            memory_bytes_max: usize::try_from(memory_bytes_max)
                .unwrap_or(usize::MAX)
                .max(MEMORY_BYTES_MIN),
        }
    }

    /// What stands under a key.
    #[inline]
    pub(crate) fn find(&self, key: &Key<'_>) -> Option<&V> {
        let slot = self.table.find(key.hash(), |slot| slot.is(key, &self.long_keys))?;
        Some(&slot.value)
    }

    /// What stands under a key, to be changed.
    #[inline]
    pub(crate) fn find_mut(&mut self, key: &Key<'_>) -> Option<&mut V> {
        let long_keys = &self.long_keys;
        let slot = self.table.find_mut(key.hash(), |slot| slot.is(key, long_keys))?;
        Some(&mut slot.value)
    }

    /// Whether one more key fits, with a value that takes `heap_bytes` elsewhere; an empty table takes
    /// any.
    pub(crate) fn has_room(&self, key: &Key<'_>, heap_bytes: usize) -> bool {
        let keys = self.table.len();
        if keys == 0 {
            return true;
        }
        let grows = keys == self.table.capacity();
        let long_bytes = grown(self.long_keys.capacity(), self.long_keys.len() + key.bytes().len());
        // While a table grows, the old one, of half the size, is there too.
        let table_bytes = self.table.allocation_size() * if grows { 3 } else { 1 };
        let needed = table_bytes + long_bytes + keys * ORDER_BYTES + self.heap_bytes + heap_bytes;
        needed <= self.memory_bytes_max
    }

    /// Puts `value` under a key under which nothing stands, whether or not there is room.
    #[cold]
    pub(crate) fn insert(&mut self, key: &Key<'_>, value: V) {
        let slot = Slot::new(key, value, self.long_keys.len());
        if key.is_long() {
            self.long_keys.extend_from_slice(key.bytes());
        }
        match self.table.entry(key.hash(), |_| false, |slot| slot.hash) {
            Entry::Vacant(entry) => {
                entry.insert(slot);
            }
            Entry::Occupied(_) => unreachable!("no slot was said to be equal"),
        }
    }

    /// Notes that values take more memory elsewhere than before, or less.
    pub(crate) fn note_heap(&mut self, before: usize, after: usize) {
        self.heap_bytes = (self.heap_bytes + after).saturating_sub(before);
    }

    /// Whether its values may take `bytes` more elsewhere.
    pub(crate) fn has_heap_room(&self, bytes: usize) -> bool {
        self.memory_bytes().saturating_add(bytes) <= self.memory_bytes_max
    }

    /// What it takes at most.
    pub(crate) fn memory_bytes_max(&self) -> usize {
        self.memory_bytes_max
    }

    /// Whether its values have outgrown it: then empty it.
    pub(crate) fn is_overgrown(&self) -> bool {
        self.memory_bytes() > self.memory_bytes_max
    }

    /// What it takes now, and while it is read in order of keys.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.allocation_size()
            + self.long_keys.capacity()
            + self.table.len() * ORDER_BYTES
            + self.heap_bytes
    }

    /// Whether there is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Each key with its hash and value, in an order that is the same after the same calls.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], u64, &V)> {
        self.table.iter().map(|slot| (slot.key(&self.long_keys), slot.hash, &slot.value))
    }

    /// Each key with its value, ascending by key.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = (&[u8], &V)> {
        let mut slots: Vec<&Slot<V>> = self.table.iter().collect();
        slots.sort_unstable_by(|a, b| a.key(&self.long_keys).cmp(b.key(&self.long_keys)));
        slots.into_iter().map(|slot| (slot.key(&self.long_keys), &slot.value))
    }

    /// Each key with its value, to be taken from, ascending by key.
    pub(crate) fn sorted_mut(&mut self) -> impl Iterator<Item = (&[u8], &mut V)> {
        let long_keys = &self.long_keys;
        let mut slots: Vec<&mut Slot<V>> = self.table.iter_mut().collect();
        slots.sort_unstable_by(|a, b| a.key(long_keys).cmp(b.key(long_keys)));
        slots.into_iter().map(|slot| slot.entry_mut(long_keys))
    }

    /// Forgets all and keeps the memory, but for what a single huge key took.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.long_keys.clear();
        self.long_keys.shrink_to(self.memory_bytes_max / 2);
        self.heap_bytes = 0;
    }
}

/// Bytes that a vector of `capacity` takes while it makes room for `length`.
fn grown(capacity: usize, length: usize) -> usize {
    if length <= capacity { capacity } else { capacity + length.max(2 * capacity) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Adds to the count of a key; false if the table is full.
    fn add(counter: &mut KeyTable<u64>, key: &[u8], count: u64) -> bool {
        let key = Key::new(key);
        if let Some(sum) = counter.find_mut(&key) {
            *sum += count;
            return true;
        }
        let has_room = counter.has_room(&key, 0);
        if has_room {
            counter.insert(&key, count);
        }
        has_room
    }

    /// Short and long keys, many of them more than once.
    fn keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let key = |number: u16| {
            let mut key = vec![0; usize::from(number % 19)];
            key.extend(number.to_string().bytes().take(usize::from(number % 6)));
            key
        };
        proptest::collection::vec(any::<u16>().prop_map(key), 0..2_500)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn counts_equal_those_of_a_plain_map(keys in keys(), memory in 0_u64..400_000) {
            let mut counter = KeyTable::new(memory);
            let mut found: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
            let mut expected: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
            let drain = |counter: &mut KeyTable<u64>, found: &mut BTreeMap<Vec<u8>, u64>| {
                for (key, _, count) in counter.iter() {
                    *found.entry(key.to_vec()).or_default() += count;
                }
                counter.clear();
            };
            for key in &keys {
                if !add(&mut counter, key, 2) {
                    drain(&mut counter, &mut found);
                    prop_assert!(add(&mut counter, key, 2));
                }
                *expected.entry(key.clone()).or_default() += 2;
            }
            drain(&mut counter, &mut found);
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn the_sorted_order_is_that_of_the_bytes(keys in keys()) {
            let mut counter = KeyTable::new(u64::MAX);
            let expected: std::collections::BTreeSet<&[u8]> =
                keys.iter().map(Vec::as_slice).collect();
            for key in &keys {
                prop_assert!(add(&mut counter, key, 1));
            }
            let found: Vec<&[u8]> = counter.sorted().map(|(key, _)| key).collect();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_table_stays_within_its_memory() {
        let memory = 1 << 20;
        let mut counter = KeyTable::new(memory);
        let mut fills = 0;
        for number in 0..200_000_u32 {
            let key = format!("a key that is longer than a slot {number}");
            if !add(&mut counter, key.as_bytes(), 1) {
                fills += 1;
                counter.clear();
            }
            let taken = counter.table.allocation_size() + counter.long_keys.capacity();
            assert!(taken as u64 <= memory, "{taken}");
        }
        assert!(fills > 5, "{fills}");
    }
}
