//! Rows of one side, divided among files by key.

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

use super::{
    key_partition::{PARTITIONS, partition_of},
    row::Row,
};
use crate::spill::{EntryWriter, SpillFile};

/// Rows of one side that are being divided among files by key.
pub(super) struct SpilledSide {
    level: u32,
    chunk_bytes: usize,
    parts: [Option<Part>; PARTITIONS],
}

struct Part {
    writer: EntryWriter,
    hash: u64,
    one_hash: bool,
}

/// Rows of one side in a file.
pub(super) struct SpilledRows {
    pub(super) file: SpillFile,
    /// Whether all keys have the same hash: dividing them once more is in vain.
    pub(super) one_hash: bool,
}

/// Two sides that are divided alike: of the probe, rows whose key may have partners.
pub(super) struct Division {
    pub(super) build: Vec<Option<SpilledRows>>,
    pub(super) probe: SpilledSide,
}

/// Numbers the files of an attempt.
#[derive(Default)]
pub(super) struct FileNumbers(u64);

impl SpilledSide {
    /// Begins to divide rows by the hashes of a level. Of each file, a chunk is in memory.
    pub(super) fn new(level: u32, chunk_bytes: usize) -> Self {
        Self { level, chunk_bytes, parts: [const { None }; PARTITIONS] }
    }

    /// By the hashes of which level rows are divided.
    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// Writes a row.
    pub(super) fn write(
        &mut self,
        row: &Row<'_>,
        numbers: &mut FileNumbers,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let part = &mut self.parts[partition_of(row.key.hash(), self.level)];
        if part.is_none() {
            numbers.0 += 1;
            let name = format!("join-{}.rows", numbers.0);
            let path = context.spill_directory()?.join(name);
            let writer = EntryWriter::create(path, self.chunk_bytes)?;
            *part = Some(Part { writer, hash: row.key.hash(), one_hash: true });
        }
        let Some(part) = part else { return Ok(()) };
        part.one_hash &= part.hash == row.key.hash();
        part.writer.write(row.key.bytes(), row.record)
    }

    /// Writes rows of the same key.
    pub(super) fn write_all<'a>(
        &mut self,
        key: &[u8],
        records: impl Iterator<Item = &'a [u8]>,
        numbers: &mut FileNumbers,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        for record in records {
            self.write(&Row::new(key, record), numbers, context)?;
        }
        Ok(())
    }

    /// Closes the files; none where no row is.
    pub(super) fn finish(self) -> Result<Vec<Option<SpilledRows>>, TaskFailure> {
        let closed = self.parts.into_iter().map(|part| {
            let Some(Part { writer, one_hash, .. }) = part else { return Ok(None) };
            Ok(Some(SpilledRows { file: writer.finish()?, one_hash }))
        });
        closed.collect()
    }
}
