//! A record with its key, as the sorter keeps it in memory and on disk.

use crate::spill::{read_entry, write_entry};

/// A record with its key: they order by key, then by the bytes of the record, so that the order of
/// records does not depend on where they came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry<'a> {
    /// The form of the key.
    pub(crate) key: &'a [u8],
    /// The record, as in a block.
    pub(crate) record: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Most bytes of the two lengths in front.
    pub(crate) const HEADER_BYTES_MAX: usize = 20;

    /// Appends the length of the key, that of the record (LEB128), the key and the record.
    #[inline]
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        write_entry(self.key, self.record, bytes);
    }

    /// Takes an entry off the front of `bytes`; none if there is no whole one.
    #[inline]
    pub(crate) fn read(bytes: &mut &'a [u8]) -> Option<Self> {
        let (key, record) = read_entry(bytes)?;
        Some(Self { key, record })
    }
}
