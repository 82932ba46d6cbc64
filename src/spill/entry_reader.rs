//! Reads entries from a file.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    ops::Range,
    path::PathBuf,
};

use regrow_protocol::TaskFailure;

use super::{SpillFile, failure};
use crate::record::read_number;

/// Longest form of the two lengths of an entry.
const LENGTHS_BYTES_MAX: usize = 20;

/// A file of entries that is being read. The file may be removed meanwhile.
pub(crate) struct EntryReader {
    path: PathBuf,
    file: File,
    /// Bytes of the file that were not read yet.
    unread: u64,
    buffer: Vec<u8>,
    /// What was read and stands behind the current entry.
    rest: Range<usize>,
    key: Range<usize>,
    value: Range<usize>,
}

impl EntryReader {
    /// Opens a file at the entry that begins at `offset`.
    pub(crate) fn open(
        spilled: &SpillFile,
        offset: u64,
        buffer_bytes: usize,
    ) -> Result<Self, TaskFailure> {
        let path = spilled.path().to_owned();
        let opened = File::open(&path).and_then(|mut file| {
            file.seek(SeekFrom::Start(offset))?;
            Ok(file)
        });
        let file = opened.map_err(|error| failure(&path, &error))?;
        Ok(Self {
            path,
            file,
            unread: spilled.bytes.saturating_sub(offset),
            buffer: vec![0; buffer_bytes],
            rest: 0..0,
            key: 0..0,
            value: 0..0,
        })
    }

    /// Goes on to the next entry; false at the end.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool, TaskFailure> {
        self.next_entry().map_err(|error| failure(&self.path, &error))
    }

    /// The key of the current entry.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.buffer[self.key.clone()]
    }

    /// The value of the current entry.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        &self.buffer[self.value.clone()]
    }

    /// Bytes of the file from behind the current entry on.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.unread + self.rest.len() as u64
    }

    fn next_entry(&mut self) -> io::Result<bool> {
        if self.bytes_left() == 0 {
            return Ok(false);
        }
        let left = usize::try_from(self.bytes_left()).unwrap_or(usize::MAX);
        self.have(left.min(LENGTHS_BYTES_MAX))?;
        let mut lengths = &self.buffer[self.rest.clone()];
        let (Some(key), Some(value)) = (read_length(&mut lengths), read_length(&mut lengths))
        else {
            return Err(damaged());
        };
        self.rest.start = self.rest.end - lengths.len();
        self.have(key.checked_add(value).ok_or_else(damaged)?)?;
        self.key = self.rest.start..self.rest.start + key;
        self.value = self.key.end..self.key.end + value;
        self.rest.start = self.value.end;
        Ok(true)
    }

    /// Has at least `bytes` bytes in memory.
    #[inline]
    fn have(&mut self, bytes: usize) -> io::Result<()> {
        if bytes <= self.rest.len() { Ok(()) } else { self.read(bytes) }
    }

    #[cold]
    fn read(&mut self, bytes: usize) -> io::Result<()> {
        if bytes as u64 > self.bytes_left() {
            return Err(damaged());
        }
        self.buffer.copy_within(self.rest.clone(), 0);
        self.rest = 0..self.rest.len();
        if bytes > self.buffer.len() {
            self.buffer.resize(bytes, 0);
        }
        while self.rest.end < bytes {
            let unread = usize::try_from(self.unread).unwrap_or(usize::MAX);
            let end = self.buffer.len().min(self.rest.end.saturating_add(unread));
            let read = self.file.read(&mut self.buffer[self.rest.end..end])?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.rest.end += read;
            self.unread -= read as u64;
        }
        Ok(())
    }
}

fn read_length(lengths: &mut &[u8]) -> Option<usize> {
    usize::try_from(read_number(lengths)?).ok()
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it was changed while it was in use")
}
