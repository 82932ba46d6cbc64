//! One sorted run on disk.
//!
//! A run is a row of chunks (numbers are little-endian):
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | length of the entries |
//! | 4 | 4 | CRC32C of the entries |
//! | 8 | | entries, whole ones, as [`Entry::write`] makes them |

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use regrow_protocol::TaskFailure;

use super::{entry::Entry, sort_key::prefix};

/// Bytes in front of the entries of a chunk.
const HEADER_BYTES: usize = 8;

/// A run that was written.
#[derive(Debug)]
pub(super) struct Run {
    path: PathBuf,
    bytes: u64,
}

/// A run that is being written.
#[derive(Debug)]
pub(crate) struct RunWriter {
    run: Run,
    file: File,
    /// The chunk in the making, with room for its header.
    chunk: Vec<u8>,
    chunk_bytes: usize,
}

/// A run that is being read. It stands at an entry until it has ended.
#[derive(Debug)]
pub(super) struct RunReader {
    path: PathBuf,
    file: File,
    /// Bytes of the file that were not read.
    left: u64,
    chunk: Vec<u8>,
    /// Where the current entry begins within the chunk, and where the next one.
    start: usize,
    next: usize,
    /// The first bytes of the key of the current entry; none when the run has ended.
    prefix: Option<u64>,
}

impl RunWriter {
    /// Makes a run whose chunks have `chunk_bytes`, or one entry if that is more.
    pub(super) fn create(path: PathBuf, chunk_bytes: usize) -> Result<Self, TaskFailure> {
        let file = File::create_new(&path).map_err(|error| failure("create", &path, &error))?;
        let chunk = vec![0; HEADER_BYTES];
        Ok(Self { run: Run { path, bytes: 0 }, file, chunk, chunk_bytes })
    }

    /// Writes the next entry.
    pub(crate) fn write(&mut self, entry: Entry<'_>) -> Result<(), TaskFailure> {
        entry.write(&mut self.chunk);
        if self.chunk.len() >= self.chunk_bytes { self.write_chunk() } else { Ok(()) }
    }

    fn write_chunk(&mut self) -> Result<(), TaskFailure> {
        let (header, entries) = self.chunk.split_at_mut(HEADER_BYTES);
        if entries.is_empty() {
            return Ok(());
        }
        let length = u32::try_from(entries.len()).map_err(|_| {
            TaskFailure::unrecoverable("a record of more than 4 GiB cannot be sorted")
        })?;
        header[..4].copy_from_slice(&length.to_le_bytes());
        header[4..].copy_from_slice(&crc32c::crc32c(entries).to_le_bytes());
        let written = self.file.write_all(&self.chunk);
        written.map_err(|error| failure("write", &self.run.path, &error))?;
        self.run.bytes += self.chunk.len() as u64;
        self.chunk.truncate(HEADER_BYTES);
        Ok(())
    }

    /// Ends the run.
    pub(super) fn finish(mut self) -> Result<Run, TaskFailure> {
        self.write_chunk()?;
        Ok(self.run)
    }
}

impl Run {
    /// How long the file is.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl RunReader {
    /// Opens a run. Its file is gone when the reader is.
    pub(super) fn open(run: Run) -> Result<Self, TaskFailure> {
        let Run { path, bytes } = run;
        let opened = File::open(&path).and_then(|file| fs::remove_file(&path).map(|()| file));
        let file = opened.map_err(|error| failure("open", &path, &error))?;
        let mut reader =
            Self { path, file, left: bytes, chunk: Vec::new(), start: 0, next: 0, prefix: None };
        reader.advance()?;
        Ok(reader)
    }

    /// The first bytes of the current key; none when the run has ended.
    #[inline]
    pub(super) fn prefix(&self) -> Option<u64> {
        self.prefix
    }

    /// The current entry; an empty one when the run has ended.
    #[inline]
    pub(super) fn entry(&self) -> Entry<'_> {
        Entry::read(&mut &self.chunk[self.start..self.next]).unwrap_or_default()
    }

    /// Goes on to the next entry.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<(), TaskFailure> {
        if self.next == self.chunk.len() && !self.read_chunk()? {
            self.start = self.next;
            self.prefix = None;
            return Ok(());
        }
        let mut rest = &self.chunk[self.next..];
        let Some(entry) = Entry::read(&mut rest) else {
            return Err(self.damaged("an entry is cut off"));
        };
        self.prefix = Some(prefix(entry.key));
        self.start = self.next;
        self.next = self.chunk.len() - rest.len();
        Ok(())
    }

    /// Reads the next chunk; false when there is none.
    fn read_chunk(&mut self) -> Result<bool, TaskFailure> {
        if self.left == 0 {
            return Ok(false);
        }
        let (mut length, mut checksum) = ([0; 4], [0; 4]);
        self.read_exactly(&mut length)?;
        self.read_exactly(&mut checksum)?;
        let length = u32::from_le_bytes(length);
        if u64::from(length) > self.left {
            return Err(self.damaged("a chunk has an impossible length"));
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.resize(length as usize, 0);
        self.read_exactly(&mut chunk)?;
        if crc32c::crc32c(&chunk) != u32::from_le_bytes(checksum) {
            return Err(self.damaged("a chunk has a wrong checksum"));
        }
        (self.chunk, self.start, self.next) = (chunk, 0, 0);
        Ok(true)
    }

    fn read_exactly(&mut self, bytes: &mut [u8]) -> Result<(), TaskFailure> {
        if self.left < bytes.len() as u64 {
            return Err(self.damaged("it ends within a chunk"));
        }
        self.file.read_exact(bytes).map_err(|error| failure("read", &self.path, &error))?;
        self.left -= bytes.len() as u64;
        Ok(())
    }

    fn damaged(&self, reason: &str) -> TaskFailure {
        let path = self.path.display();
        TaskFailure::task(format!("the sorted entries in {path} are damaged: {reason}"))
    }
}

fn failure(action: &str, path: &Path, error: &io::Error) -> TaskFailure {
    TaskFailure::task(format!("cannot {action} the sorted entries in {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(directory: &Path, chunk_bytes: usize) -> Run {
        let path = directory.join(format!("{chunk_bytes}"));
        let mut writer = RunWriter::create(path, chunk_bytes).unwrap();
        for number in 0..100_u8 {
            writer.write(Entry { key: &[number], record: &[number; 50] }).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn a_run_gives_back_what_was_written_whatever_its_chunks() {
        let directory = tempfile::tempdir().unwrap();
        for chunk_bytes in [0, 60, 1000, 1 << 20] {
            let mut reader = RunReader::open(written(directory.path(), chunk_bytes)).unwrap();
            for number in 0..100_u8 {
                assert_eq!(reader.prefix(), Some(u64::from(number) << 56));
                assert_eq!(reader.entry(), Entry { key: &[number], record: &[number; 50] });
                reader.advance().unwrap();
            }
            assert_eq!(reader.prefix(), None);
            reader.advance().unwrap();
            assert_eq!((reader.prefix(), reader.entry()), (None, Entry::default()));
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    fn read(run: Run) -> Result<(), TaskFailure> {
        let mut reader = RunReader::open(run)?;
        while reader.prefix().is_some() {
            reader.advance()?;
        }
        Ok(())
    }

    #[test]
    fn a_run_that_changed_on_disk_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let size = written(directory.path(), 1000).bytes();
        let path = directory.path().join("1000");
        let whole = fs::read(&path).unwrap();
        assert_eq!(whole.len() as u64, size);
        for position in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[position] ^= 0x20;
            fs::write(&path, bytes).unwrap();
            let failure = read(Run { path: path.clone(), bytes: size }).unwrap_err();
            assert!(matches!(failure, TaskFailure::Task { .. }), "{failure:?}");
        }
    }
}
