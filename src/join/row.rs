//! A row of a side.

use crate::key_table::Key;

/// A record with its key, both as they are in blocks.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) key: Key<'a>,
    pub(super) record: &'a [u8],
}

impl<'a> Row<'a> {
    /// Hashes the key.
    #[inline]
    pub(super) fn new(key: &'a [u8], record: &'a [u8]) -> Self {
        Self { key: Key::new(key), record }
    }
}
