//! Counts per key, in bounded memory.

mod slot;

use hashbrown::{HashTable, hash_table::Entry};

use self::slot::{PackedKey, Slot};

/// Counts per key. A key that is present costs one look-up and no allocation; keys up to 15 bytes
/// lie in the table itself.
pub(crate) struct KeyCounter {
    table: HashTable<Slot>,
    long_keys: Vec<u8>,
    memory_bytes_max: usize,
}

/// The key is new and there is no memory for it: empty the counter, then add again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Keys that a counter makes room for at its start.
const KEYS_MIN: usize = 512;

/// Memory that a counter takes at least: below this it would be emptied after every few keys.
const MEMORY_BYTES_MIN: usize = 128 << 10;

/// What a slot takes while the counter is emptied in order of keys: a reference.
const ORDER_BYTES: usize = size_of::<usize>();

impl KeyCounter {
    /// Makes an empty counter that takes `memory_bytes_max` at most, growth included, but never less
    /// than 128 KiB.
    pub(crate) fn new(memory_bytes_max: u64) -> Self {
        Self {
            table: HashTable::with_capacity(KEYS_MIN),
            long_keys: Vec::new(),
            memory_bytes_max: usize::try_from(memory_bytes_max)
                .unwrap_or(usize::MAX)
                .max(MEMORY_BYTES_MIN),
        }
    }

    /// Adds `count` to what stands under `key`; sums saturate.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8], count: u64) -> Result<(), Full> {
        let packed = PackedKey::new(key);
        let hash = packed.hash(key);
        let long_keys = &self.long_keys;
        if let Some(slot) = self.table.find_mut(hash, |slot| slot.is(packed, hash, key, long_keys))
        {
            slot.count = slot.count.saturating_add(count);
            return Ok(());
        }
        self.insert(key, packed, hash, count)
    }

    /// Whether there is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Each key with its hash and count, in an order that is the same after the same calls.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], u64, u64)> {
        self.table.iter().map(|slot| (slot.key(&self.long_keys), slot.hash, slot.count))
    }

    /// Each key with its count, ascending by key.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let mut slots: Vec<&Slot> = self.table.iter().collect();
        slots.sort_unstable_by(|a, b| a.key(&self.long_keys).cmp(b.key(&self.long_keys)));
        slots.into_iter().map(|slot| (slot.key(&self.long_keys), slot.count))
    }

    /// Forgets all and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.long_keys.clear();
    }

    #[cold]
    fn insert(&mut self, key: &[u8], packed: PackedKey, hash: u64, count: u64) -> Result<(), Full> {
        if !self.has_room(key) {
            return Err(Full);
        }
        let slot = Slot::new(packed, key, hash, self.long_keys.len()).counting(count);
        if packed.is_long() {
            self.long_keys.extend_from_slice(key);
        }
        match self.table.entry(hash, |_| false, |slot| slot.hash) {
            Entry::Vacant(entry) => {
                entry.insert(slot);
            }
            Entry::Occupied(_) => unreachable!("no slot was said to be equal"),
        }
        Ok(())
    }

    /// Whether one more key fits; an empty counter takes any.
    fn has_room(&self, key: &[u8]) -> bool {
        let keys = self.table.len();
        if keys == 0 {
            return true;
        }
        let grows = keys == self.table.capacity();
        let long_bytes = grown(self.long_keys.capacity(), self.long_keys.len() + key.len());
        // While a table grows, the old one, of half the size, is there too.
        let table_bytes = self.table.allocation_size() * if grows { 3 } else { 1 };
        let needed = table_bytes + long_bytes + keys * ORDER_BYTES;
        needed <= self.memory_bytes_max
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
            let mut counter = KeyCounter::new(memory);
            let mut found: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
            let mut expected: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
            let drain = |counter: &mut KeyCounter, found: &mut BTreeMap<Vec<u8>, u64>| {
                for (key, _, count) in counter.iter() {
                    *found.entry(key.to_vec()).or_default() += count;
                }
                counter.clear();
            };
            for key in &keys {
                if counter.add(key, 2) == Err(Full) {
                    drain(&mut counter, &mut found);
                    prop_assert_eq!(counter.add(key, 2), Ok(()));
                }
                *expected.entry(key.clone()).or_default() += 2;
            }
            drain(&mut counter, &mut found);
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn the_sorted_order_is_that_of_the_bytes(keys in keys()) {
            let mut counter = KeyCounter::new(u64::MAX);
            let expected: std::collections::BTreeSet<&[u8]> =
                keys.iter().map(Vec::as_slice).collect();
            for key in &keys {
                prop_assert_eq!(counter.add(key, 1), Ok(()));
            }
            let found: Vec<&[u8]> = counter.sorted().map(|(key, _)| key).collect();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_counter_stays_within_its_memory() {
        let memory = 1 << 20;
        let mut counter = KeyCounter::new(memory);
        let mut fills = 0;
        for number in 0..200_000_u32 {
            let key = format!("a key that is longer than a slot {number}");
            if counter.add(key.as_bytes(), 1) == Err(Full) {
                fills += 1;
                counter.clear();
            }
            let taken = counter.table.allocation_size() + counter.long_keys.capacity();
            assert!(taken as u64 <= memory, "{taken}");
        }
        assert!(fills > 5, "{fills}");
    }
}
