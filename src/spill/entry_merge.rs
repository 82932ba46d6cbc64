//! Reads several sorted files of entries as one.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, binary_heap::PeekMut},
};

use regrow_protocol::TaskFailure;

use super::{EntryReader, SpillFile};

/// Sorted files that are read as one: ascending by key, equal keys in the order of the files.
pub(crate) struct EntryMerge {
    heads: BinaryHeap<Reverse<Head>>,
}

/// A file at one of its entries.
struct Head {
    reader: EntryReader,
    number: usize,
}

impl EntryMerge {
    /// Begins with the first entry; the files are removed.
    pub(crate) fn new(
        files: impl IntoIterator<Item = SpillFile>,
        buffer_bytes: usize,
    ) -> Result<Self, TaskFailure> {
        let mut heads = BinaryHeap::new();
        for (number, file) in files.into_iter().enumerate() {
            let mut reader = EntryReader::open(&file, 0, buffer_bytes)?;
            if reader.advance()? {
                heads.push(Reverse(Head { reader, number }));
            }
        }
        Ok(Self { heads })
    }

    /// The key and the value of the current entry; none at the end.
    #[inline]
    pub(crate) fn entry(&self) -> Option<(&[u8], &[u8])> {
        let Reverse(head) = self.heads.peek()?;
        Some((head.reader.key(), head.reader.value()))
    }

    /// Goes on to the next entry.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<(), TaskFailure> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(()) };
        if !head.0.reader.advance()? {
            PeekMut::pop(head);
        }
        Ok(())
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        self.reader.key().cmp(other.reader.key()).then(self.number.cmp(&other.number))
    }
}
