//! A record with its key, as it is sorted.

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
    /// Appends it to `bytes`, in the form of a spill file.
    #[inline]
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        write_entry(self.key, self.record, bytes);
    }

    /// Takes an entry off the front of `bytes`; none if there is no whole one.
    #[inline]
    pub(super) fn read(bytes: &mut &'a [u8]) -> Option<Self> {
        let (key, record) = read_entry(bytes)?;
        Some(Self { key, record })
    }
}
