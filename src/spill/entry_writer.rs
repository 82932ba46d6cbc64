//! Writes entries to a file.

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
};

use regrow_protocol::TaskFailure;

use super::{failure, write_entry};

/// A file of entries that is being written; removed when dropped.
pub(crate) struct EntryWriter {
    file: File,
    buffer: Vec<u8>,
    buffer_bytes: usize,
    spilled: SpillFile,
}

/// A file of entries that is complete; removed when dropped.
pub(crate) struct SpillFile {
    path: PathBuf,
    /// Its length.
    pub(crate) bytes: u64,
}

impl EntryWriter {
    /// Makes the file called `name`, which must not be there.
    pub(crate) fn create(
        directory: &Path,
        name: &str,
        buffer_bytes: usize,
    ) -> Result<Self, TaskFailure> {
        let path = directory.join(name);
        let file = File::create_new(&path).map_err(|error| failure(&path, &error))?;
        Ok(Self { file, buffer: Vec::new(), buffer_bytes, spilled: SpillFile { path, bytes: 0 } })
    }

    /// Appends an entry.
    #[inline]
    pub(crate) fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), TaskFailure> {
        // Flushed before, so that the buffer grows beyond its bytes for a single large entry only.
        if self.buffer.len() + key.len() + value.len() > self.buffer_bytes {
            self.flush()?;
        }
        write_entry(key, value, &mut self.buffer);
        Ok(())
    }

    /// Writes what is left and closes the file.
    pub(crate) fn finish(mut self) -> Result<SpillFile, TaskFailure> {
        self.flush()?;
        Ok(self.spilled)
    }

    fn flush(&mut self) -> Result<(), TaskFailure> {
        let written = self.file.write_all(&self.buffer);
        written.map_err(|error| failure(&self.spilled.path, &error))?;
        self.spilled.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(self.buffer_bytes);
        Ok(())
    }
}

impl SpillFile {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        // If it stays, it goes with the attempt's directory.
        let _ = std::fs::remove_file(&self.path);
    }
}
