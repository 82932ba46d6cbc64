//! Reads one sorted run.

use regrow_protocol::TaskFailure;

use super::{entry::Entry, sort_key::prefix};
use crate::spill::{EntryReader, SpillFile};

/// A sorted run that is being read. It stands at an entry until it has ended.
#[derive(Debug)]
pub(super) struct RunReader {
    entries: EntryReader,
    /// The first bytes of the key of the current entry; none when the run has ended.
    prefix: Option<u64>,
}

impl RunReader {
    /// Opens a run, at its first entry. Its disk space is free when the reader is gone.
    pub(super) fn open(run: SpillFile) -> Result<Self, TaskFailure> {
        let mut reader = Self { entries: EntryReader::open(&run)?, prefix: None };
        reader.advance()?;
        Ok(reader)
    }

    /// The first bytes of the current key; none when the run has ended.
    #[inline]
    pub(super) fn prefix(&self) -> Option<u64> {
        self.prefix
    }

    /// The current entry; the last one when the run has ended.
    #[inline]
    pub(super) fn entry(&self) -> Entry<'_> {
        Entry { key: self.entries.key(), record: self.entries.value() }
    }

    /// Goes on to the next entry.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<(), TaskFailure> {
        self.prefix = self.entries.advance()?.then(|| prefix(self.entries.key()));
        Ok(())
    }
}
