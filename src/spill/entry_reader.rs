//! Reads entries from a file.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    ops::Range,
    path::PathBuf,
};

use regrow_protocol::TaskFailure;

use super::{HEADER_BYTES, SpillFile, failure, read_entry};

/// A file of entries that is being read. The file may be removed meanwhile.
#[derive(Debug)]
pub(crate) struct EntryReader {
    path: PathBuf,
    file: File,
    /// Bytes of the file that were not read.
    unread: u64,
    /// The entries of the current chunk, and where in the file it begins.
    chunk: Vec<u8>,
    chunk_start: u64,
    /// The current entry within the chunk; the next one begins where the value ends.
    key: Range<usize>,
    value: Range<usize>,
}

/// Where an entry begins; by default, the first one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    chunk_start: u64,
    offset: usize,
}

impl EntryReader {
    /// Opens a file at its first entry.
    pub(crate) fn open(spilled: &SpillFile) -> Result<Self, TaskFailure> {
        Self::open_at(spilled, Position::default())
    }

    /// Opens a file at an entry.
    pub(crate) fn open_at(spilled: &SpillFile, position: Position) -> Result<Self, TaskFailure> {
        let path = spilled.path().to_owned();
        let Position { chunk_start, offset } = position;
        let opened = File::open(&path).and_then(|mut file| {
            file.seek(SeekFrom::Start(chunk_start))?;
            Ok(file)
        });
        let mut reader = Self {
            file: opened.map_err(|error| failure("open", &path, &error))?,
            path,
            unread: spilled.bytes().saturating_sub(chunk_start),
            chunk: Vec::new(),
            chunk_start,
            key: 0..0,
            value: 0..0,
        };
        if offset > 0 {
            reader.read_chunk()?;
            reader.value = offset..offset;
        }
        Ok(reader)
    }

    /// Goes on to the next entry; false at the end.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool, TaskFailure> {
        if self.value.end == self.chunk.len() && !self.next_chunk()? {
            return Ok(false);
        }
        let mut rest = self.chunk.get(self.value.end..).unwrap_or_default();
        let Some((key, value)) = read_entry(&mut rest) else {
            return Err(self.damaged("an entry is cut off"));
        };
        let end = self.chunk.len() - rest.len();
        self.value = end - value.len()..end;
        self.key = self.value.start - key.len()..self.value.start;
        Ok(true)
    }

    /// The key of the current entry.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.chunk[self.key.clone()]
    }

    /// The value of the current entry.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        &self.chunk[self.value.clone()]
    }

    /// Where the next entry begins; none if there is no other one.
    pub(crate) fn next_position(&self) -> Option<Position> {
        let is_last = self.unread == 0 && self.value.end == self.chunk.len();
        let position = Position { chunk_start: self.chunk_start, offset: self.value.end };
        (!is_last).then_some(position)
    }

    /// Goes on to the next chunk; false at the end.
    #[cold]
    fn next_chunk(&mut self) -> Result<bool, TaskFailure> {
        if self.unread == 0 {
            return Ok(false);
        }
        if !self.chunk.is_empty() {
            self.chunk_start += (HEADER_BYTES + self.chunk.len()) as u64;
        }
        self.read_chunk()?;
        Ok(true)
    }

    fn read_chunk(&mut self) -> Result<(), TaskFailure> {
        (self.key, self.value) = (0..0, 0..0);
        let mut header = [0; HEADER_BYTES];
        self.read_exactly(&mut header)?;
        let [l0, l1, l2, l3, checksum @ ..] = header;
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        if length == 0 || u64::from(length) > self.unread {
            return Err(self.damaged("a chunk has an impossible length"));
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.resize(length as usize, 0);
        self.read_exactly(&mut chunk)?;
        if crc32c::crc32c(&chunk) != u32::from_le_bytes(checksum) {
            return Err(self.damaged("a chunk has a wrong checksum"));
        }
        self.chunk = chunk;
        Ok(())
    }

    fn read_exactly(&mut self, bytes: &mut [u8]) -> Result<(), TaskFailure> {
        if self.unread < bytes.len() as u64 {
            return Err(self.damaged("it ends within a chunk"));
        }
        let read = self.file.read_exact(bytes);
        read.map_err(|error| failure("read", &self.path, &error))?;
        self.unread -= bytes.len() as u64;
        Ok(())
    }

    fn damaged(&self, reason: &str) -> TaskFailure {
        TaskFailure::task(format!("the spill file {} is damaged: {reason}", self.path.display()))
    }
}
