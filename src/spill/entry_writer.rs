//! Writes entries to a file.

use std::{fs::File, io::Write as _, path::PathBuf};

use regrow_protocol::TaskFailure;

use super::{HEADER_BYTES, SpillFile, failure, write_entry};

/// A file of entries that is being written; removed when dropped.
#[derive(Debug)]
pub(crate) struct EntryWriter {
    spilled: SpillFile,
    file: File,
    /// The chunk in the making, with room for its header.
    chunk: Vec<u8>,
    chunk_bytes: usize,
}

impl EntryWriter {
    /// Makes the file at `path`, which must not be there, of chunks of about `chunk_bytes`, or of one
    /// entry if that is more.
    pub(crate) fn create(path: PathBuf, chunk_bytes: usize) -> Result<Self, TaskFailure> {
        let file = File::create_new(&path).map_err(|error| failure("create", &path, &error))?;
        let chunk = vec![0; HEADER_BYTES];
        Ok(Self { spilled: SpillFile::new(path, 0), file, chunk, chunk_bytes })
    }

    /// Appends an entry.
    #[inline]
    pub(crate) fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), TaskFailure> {
        // Written before, so that a chunk is longer for a single large entry only.
        if self.chunk.len() + key.len() + value.len() > self.chunk_bytes {
            self.write_chunk()?;
        }
        write_entry(key, value, &mut self.chunk);
        Ok(())
    }

    /// Writes what is left and closes the file.
    pub(crate) fn finish(mut self) -> Result<SpillFile, TaskFailure> {
        self.write_chunk()?;
        Ok(self.spilled)
    }

    fn write_chunk(&mut self) -> Result<(), TaskFailure> {
        let (header, entries) = self.chunk.split_at_mut(HEADER_BYTES);
        if entries.is_empty() {
            return Ok(());
        }
        let length = u32::try_from(entries.len()).map_err(|_| {
            TaskFailure::unrecoverable("a record of more than 4 GiB cannot be kept on disk")
        })?;
        header[..4].copy_from_slice(&length.to_le_bytes());
        header[4..].copy_from_slice(&crc32c::crc32c(entries).to_le_bytes());
        let written = self.file.write_all(&self.chunk);
        written.map_err(|error| failure("write", self.spilled.path(), &error))?;
        self.spilled.grow(self.chunk.len());
        self.chunk.truncate(HEADER_BYTES);
        self.chunk.shrink_to(self.chunk_bytes);
        Ok(())
    }
}
