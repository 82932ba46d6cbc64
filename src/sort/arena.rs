//! Records in memory that are to be sorted.

use super::{entry::Entry, sort_key::prefix};
use crate::spill::LENGTHS_BYTES_MAX;

/// Bytes of a piece of memory, where there is much of it.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// Bytes of a piece of memory, where there is little.
const CHUNK_BYTES_MIN: usize = 1 << 10;

/// Pieces that the memory is divided into at least, so that little of it is lost in the last one.
const CHUNKS_MIN: u64 = 32;

/// Entries that an index has room for at first.
const SLOTS_MIN: usize = 64;

/// Entries in memory, and an index of them that can be sorted without moving them.
#[derive(Debug)]
pub(super) struct Arena {
    /// An entry lies within one piece.
    chunks: Vec<Vec<u8>>,
    /// Pieces that hold entries.
    used: usize,
    index: Vec<Slot>,
    chunk_bytes: usize,
    /// Bytes of all pieces.
    allocated: u64,
    bytes_max: u64,
}

/// There is no room for the entry.
#[derive(Debug)]
pub(super) struct Full;

/// Where an entry lies, and the first bytes of its key, which decide almost always.
#[derive(Clone, Copy, Debug)]
struct Slot {
    prefix: u64,
    chunk: u32,
    offset: u32,
}

impl Arena {
    /// An empty one, which takes at most `bytes_max`, or one piece with its index if that is more.
    pub(super) fn new(bytes_max: u64) -> Self {
        let chunk_bytes = usize::try_from(bytes_max / CHUNKS_MIN).unwrap_or(CHUNK_BYTES_MAX);
        Self {
            chunks: Vec::new(),
            used: 0,
            index: Vec::new(),
            chunk_bytes: chunk_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX),
            allocated: 0,
            bytes_max,
        }
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Adds an entry. An empty arena takes any.
    #[inline]
    pub(super) fn add(&mut self, entry: Entry<'_>) -> Result<(), Full> {
        let bytes = LENGTHS_BYTES_MAX + entry.key.len() + entry.record.len();
        let has_room = self
            .used
            .checked_sub(1)
            .and_then(|last| self.chunks.get(last))
            .is_some_and(|chunk| chunk.capacity() - chunk.len() >= bytes);
        if !has_room || self.index.len() == self.index.capacity() {
            self.make_room(bytes, has_room)?;
        }
        let last = self.used - 1;
        let chunk = &mut self.chunks[last];
        let slot =
            Slot { prefix: prefix(entry.key), chunk: number(last), offset: number(chunk.len()) };
        entry.write(chunk);
        self.index.push(slot);
        Ok(())
    }

    /// Makes room in the index for one more entry, and in a piece for `bytes`, if it `has_room` not.
    #[cold]
    fn make_room(&mut self, bytes: usize, has_room: bool) -> Result<(), Full> {
        let (length, capacity) = (self.index.len(), self.index.capacity());
        let capacity = if length < capacity { capacity } else { (2 * length).max(SLOTS_MIN) };
        let index_bytes = (capacity * size_of::<Slot>()) as u64;
        let reused = self.chunks.get(self.used).is_some_and(|chunk| chunk.capacity() >= bytes);
        let new_bytes = if has_room || reused { 0 } else { self.chunk_bytes.max(bytes) };
        let wanted = self.allocated + new_bytes as u64 + index_bytes;
        if wanted > self.bytes_max && !self.is_empty() {
            return Err(Full);
        }
        self.index.reserve_exact(capacity - length);
        if has_room {
            return Ok(());
        }
        if !reused {
            // One that is too small for this entry would be in the way.
            self.free_unused();
            self.chunks.push(Vec::with_capacity(new_bytes));
            self.allocated += new_bytes as u64;
        }
        self.used += 1;
        Ok(())
    }

    /// Frees the pieces that hold nothing.
    fn free_unused(&mut self) {
        let unused: usize = self.chunks.drain(self.used..).map(|chunk| chunk.capacity()).sum();
        self.allocated = self.allocated.saturating_sub(unused as u64);
    }

    /// Puts the entries in order.
    pub(super) fn sort(&mut self) {
        let mut index = std::mem::take(&mut self.index);
        // Numbers alone are sorted without a branch per comparison; what they leave open is little,
        // most often.
        index.sort_unstable_by_key(|slot| slot.prefix);
        for same in index.chunk_by_mut(|a, b| a.prefix == b.prefix) {
            if same.len() > 1 {
                same.sort_unstable_by(|a, b| self.entry(*a).cmp(&self.entry(*b)));
            }
        }
        self.index = index;
    }

    /// All entries, in the order that [`sort`](Self::sort) made.
    pub(super) fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        self.index.iter().map(|slot| self.entry(*slot))
    }

    /// The entry at `position` of the order that [`sort`](Self::sort) made.
    #[inline]
    pub(super) fn get(&self, position: usize) -> Option<Entry<'_>> {
        Some(self.entry(*self.index.get(position)?))
    }

    #[inline]
    fn entry(&self, slot: Slot) -> Entry<'_> {
        let mut bytes = &self.chunks[slot.chunk as usize][slot.offset as usize..];
        #[expect(clippy::expect_used, reason = "`add` wrote a whole entry there")]
        Entry::read(&mut bytes).expect("a slot tells where an entry lies")
    }

    /// Forgets all entries, and keeps the memory for others.
    pub(super) fn clear(&mut self) {
        self.index.clear();
        self.used = 0;
        for chunk in &mut self.chunks {
            chunk.clear();
        }
    }
}

/// A place in a piece, or the number of a piece: memory for 2^32 pieces of 1 KiB is not there, and
/// an entry comes from a block, which is far shorter than 2^32.
fn number(place: usize) -> u32 {
    #[expect(clippy::expect_used, reason = "as said above")]
    u32::try_from(place).expect("pieces are few and short")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(arena: &Arena) -> Vec<(Vec<u8>, Vec<u8>)> {
        arena.iter().map(|entry| (entry.key.to_vec(), entry.record.to_vec())).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_sorts_as_a_vector_of_pairs_does(
            mut entries in proptest::collection::vec((
                proptest::collection::vec(0_u8..3, 0..12),
                proptest::collection::vec(0_u8..3, 0..40),
            ), 0..200),
        ) {
            let mut arena = Arena::new(u64::MAX);
            for (key, record) in &entries {
                arena.add(Entry { key, record }).unwrap();
            }
            arena.sort();
            entries.sort();
            prop_assert_eq!(content(&arena), entries);
        }

        #[test]
        fn it_takes_no_more_memory_than_it_may(
            lengths in proptest::collection::vec(1_usize..5000, 1..200),
            bytes_max in 0_u64..200_000,
        ) {
            let mut arena = Arena::new(bytes_max);
            for length in lengths {
                let record = vec![1; length];
                if arena.add(Entry { key: b"k", record: &record }).is_err() {
                    prop_assert!(!arena.is_empty());
                    arena.clear();
                    arena.add(Entry { key: b"k", record: &record }).unwrap();
                }
                let held: usize = arena.chunks.iter().map(Vec::capacity).sum();
                prop_assert_eq!(held as u64, arena.allocated);
                let index = arena.index.capacity() * size_of::<Slot>();
                let least = CHUNK_BYTES_MIN.max(arena.chunks[0].capacity()) + 64 * size_of::<Slot>();
                prop_assert!((held + index) as u64 <= bytes_max.max(least as u64));
            }
        }
    }
}
