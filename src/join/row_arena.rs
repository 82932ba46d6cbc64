//! Rows in memory, in lists.

use crate::record::{read_bytes, write_bytes};

/// Bytes of a chunk where there is much memory.
const CHUNK_BYTES_MAX: usize = 256 << 10;

/// Bytes of a chunk where there is little.
const CHUNK_BYTES_MIN: usize = 4 << 10;

/// Most bytes of the length of a row and of the place of the next one.
const HEADER_BYTES_MAX: usize = 18;

/// Rows in lists, in chunks that never move: what they take is known at each time.
pub(super) struct RowArena {
    chunks: Vec<Vec<u8>>,
    chunk_bytes: usize,
    memory_bytes: usize,
}

/// A list of rows: its first one and its last one.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowList {
    first: Place,
    last: Place,
}

/// Where a row is: the place of the next one (chunk, offset: 4 bytes each, all ones at the end of
/// the list), its length (LEB128), the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    chunk: u32,
    offset: u32,
}

const END: Place = Place { chunk: u32::MAX, offset: u32::MAX };

impl RowArena {
    /// Makes an empty one, for about `memory_bytes`.
    pub(super) fn new(memory_bytes: usize) -> Self {
        let chunk_bytes = (memory_bytes / 16).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        Self { chunks: Vec::new(), chunk_bytes, memory_bytes: 0 }
    }

    /// How much more memory it would take with one more row.
    #[inline]
    pub(super) fn growth(&self, row: &[u8]) -> usize {
        let needed = row.len() + HEADER_BYTES_MAX;
        let left = self.chunks.last().map_or(0, |chunk| chunk.capacity() - chunk.len());
        if needed <= left { 0 } else { needed.max(self.chunk_bytes) }
    }

    /// What it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Begins a list.
    pub(super) fn begin(&mut self, row: &[u8]) -> RowList {
        let place = self.put(row);
        RowList { first: place, last: place }
    }

    /// Puts a row at the end of a list.
    pub(super) fn append(&mut self, list: &mut RowList, row: &[u8]) {
        let place = self.put(row);
        let next = [place.chunk.to_le_bytes(), place.offset.to_le_bytes()].concat();
        let before = list.last;
        let chunk = &mut self.chunks[before.chunk as usize];
        chunk[before.offset as usize..][..8].copy_from_slice(&next);
        list.last = place;
    }

    /// The rows of a list, in the order in which they came.
    pub(super) fn rows(&self, list: RowList) -> Rows<'_> {
        Rows { arena: self, next: list.first }
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.memory_bytes = 0;
    }

    fn put(&mut self, row: &[u8]) -> Place {
        let growth = self.growth(row);
        if growth > 0 {
            self.memory_bytes += growth;
            self.chunks.push(Vec::with_capacity(growth));
        }
        let index = self.chunks.len() - 1;
        let chunk = &mut self.chunks[index];
        let place = Place { chunk: short(index), offset: short(chunk.len()) };
        chunk.extend_from_slice(&END.chunk.to_le_bytes());
        chunk.extend_from_slice(&END.offset.to_le_bytes());
        write_bytes(row, chunk);
        place
    }
}

/// A number that is far below 2^32: chunks take 4 KiB at least, and a row came in a block of less
/// than 4 GiB.
fn short(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The rows of a list.
pub(super) struct Rows<'a> {
    arena: &'a RowArena,
    next: Place,
}

impl<'a> Iterator for Rows<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let Place { chunk, offset } = self.next;
        let (next, mut rest) = self
            .arena
            .chunks
            .get(chunk as usize)?
            .get(offset as usize..)?
            .split_first_chunk::<8>()?;
        let [c0, c1, c2, c3, o0, o1, o2, o3] = *next;
        self.next = Place {
            chunk: u32::from_le_bytes([c0, c1, c2, c3]),
            offset: u32::from_le_bytes([o0, o1, o2, o3]),
        };
        read_bytes(&mut rest)
    }
}
