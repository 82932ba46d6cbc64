//! One sorted run: per key its length (LEB128), its bytes, its count (LEB128).

use std::{
    cmp::Ordering,
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use crate::record::{write_bytes, write_number};

/// Bytes that a run being read or written has in memory.
const BUFFER_BYTES: usize = 64 << 10;

/// A run that is being written.
pub(super) struct RunWriter {
    path: PathBuf,
    file: BufWriter<File>,
    entry: Vec<u8>,
}

impl RunWriter {
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, File::create_new(&path)?);
        Ok(Self { path, file, entry: Vec::new() })
    }

    pub(super) fn write(&mut self, key: &[u8], count: u64) -> io::Result<()> {
        self.entry.clear();
        write_bytes(key, &mut self.entry);
        write_number(count, &mut self.entry);
        self.file.write_all(&self.entry)
    }

    pub(super) fn finish(mut self) -> io::Result<PathBuf> {
        self.file.flush()?;
        Ok(self.path)
    }
}

/// A run that is being read; ordered by its current key.
pub(super) struct RunReader {
    file: BufReader<File>,
    key: Vec<u8>,
    count: u64,
}

impl RunReader {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
        Ok(Self { file, key: Vec::new(), count: 0 })
    }

    /// The current key; empty before the first [`advance`](Self::advance).
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The count of the current key.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Goes on to the next key; false at the end.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        if self.file.fill_buf()?.is_empty() {
            return Ok(false);
        }
        let length = self.number()?;
        self.key.clear();
        let read = (&mut self.file).take(length).read_to_end(&mut self.key)?;
        if read as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.count = self.number()?;
        Ok(true)
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            self.file.read_exact(&mut byte)?;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "a number of more than 64 bits"))
    }
}

impl PartialEq for RunReader {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for RunReader {}

impl PartialOrd for RunReader {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RunReader {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}
