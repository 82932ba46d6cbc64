//! A record with its key, as the sorter keeps it in memory and on disk.

use crate::record::{read_number, write_number};

/// A record with its key: they order by key, then by the bytes of the record, so that the order of
/// records does not depend on where they came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry<'a> {
    /// The form of the key.
    pub(super) key: &'a [u8],
    /// The record, as in a block.
    pub(super) record: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Most bytes of the two lengths in front.
    pub(super) const HEADER_BYTES_MAX: usize = 20;

    /// Appends the length of the key, that of the record (LEB128), the key and the record.
    #[inline]
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        write_number(self.key.len() as u64, bytes);
        write_number(self.record.len() as u64, bytes);
        bytes.extend_from_slice(self.key);
        bytes.extend_from_slice(self.record);
    }

    /// Takes an entry off the front of `bytes`; none if there is no whole one.
    #[inline]
    pub(super) fn read(bytes: &mut &'a [u8]) -> Option<Self> {
        let key_length = usize::try_from(read_number(bytes)?).ok()?;
        let record_length = usize::try_from(read_number(bytes)?).ok()?;
        let (key, rest) = bytes.split_at_checked(key_length)?;
        let (record, rest) = rest.split_at_checked(record_length)?;
        *bytes = rest;
        Some(Self { key, record })
    }
}
