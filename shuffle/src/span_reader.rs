//! Buffered sequential reads that never read past what is wanted.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

use crate::block_header::BlockHeader;

/// Most bytes that are read ahead while blocks are short: fits the cache of a core, longer reads
/// are hardly faster, and from 128 KiB on the allocator asks the system for each buffer anew.
const BUFFER_BYTES: usize = 64 << 10;

/// Bytes that are read straight to where they are wanted if there are at least so many of them;
/// also what is read ahead while blocks are that long.
const DIRECT_BYTES_MIN: usize = 8 << 10;

/// Reads the blocks of spans of a file: short ones through a buffer, long ones straight to where
/// they are wanted, together with the header of the next.
#[derive(Debug)]
pub(crate) struct SpanReader {
    file: File,
    buffer: Vec<u8>,
    /// What the buffer holds and nobody has read.
    start: usize,
    end: usize,
    /// Offset in the file of the next byte that is not in the buffer.
    position: u64,
    /// Offset in the file up to which may be read ahead.
    limit: u64,
    /// How much to read ahead.
    ahead: usize,
}

impl SpanReader {
    /// Reads from `file`, altogether `total` bytes.
    pub(crate) fn new(file: File, total: u64) -> Self {
        let bytes = usize::try_from(total).unwrap_or(usize::MAX).min(BUFFER_BYTES);
        let buffer = vec![0; bytes.max(BlockHeader::BYTES)];
        Self { file, buffer, start: 0, end: 0, position: 0, limit: 0, ahead: DIRECT_BYTES_MIN }
    }

    /// Whether the reader stands at `from` and may read all up to `to`.
    pub(crate) fn is_within(&self, from: u64, to: u64) -> bool {
        self.position - (self.end - self.start) as u64 == from && to <= self.limit
    }

    /// Goes to `from`; all up to `to` will be read.
    pub(crate) fn go_to(&mut self, from: u64, to: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(from))?;
        (self.start, self.end) = (0, 0);
        (self.position, self.limit) = (from, to);
        Ok(())
    }

    /// Reads the next header.
    pub(crate) fn read_header(&mut self) -> io::Result<BlockHeader> {
        let mut header = [0; BlockHeader::BYTES];
        self.read_short(&mut header)?;
        Ok(BlockHeader::from_bytes(header))
    }

    /// Reads the next `length` bytes into `block`, in place of what is in it.
    pub(crate) fn read_block(&mut self, length: usize, block: &mut Vec<u8>) -> io::Result<()> {
        let buffered = (self.end - self.start).min(length);
        if length - buffered < DIRECT_BYTES_MIN {
            self.ahead = BUFFER_BYTES;
            // Not cleared first: that would make `resize` zero all of it each time.
            block.resize(length, 0);
            return self.read_short(block);
        }
        self.ahead = DIRECT_BYTES_MIN;
        let end = self.position + (length - buffered) as u64;
        let next = if end < self.limit { BlockHeader::BYTES } else { 0 };
        block.resize(length + next, 0);
        let (now, rest) = block.split_at_mut(buffered);
        self.read_short(now)?;
        self.file.read_exact(rest)?;
        self.position = end + next as u64;
        let header = block.get(length..).unwrap_or_default();
        (self.start, self.end) = (0, next);
        for (to, from) in self.buffer.iter_mut().zip(header) {
            *to = *from;
        }
        block.truncate(length);
        Ok(())
    }

    /// Fills `out` with the next bytes, through the buffer.
    fn read_short(&mut self, mut out: &mut [u8]) -> io::Result<()> {
        while !out.is_empty() {
            if self.start == self.end {
                self.fill()?;
            }
            let mut buffered = self.buffer.get(self.start..self.end).unwrap_or_default();
            let now = buffered.read(out)?;
            self.start += now;
            out = out.get_mut(now..).unwrap_or_default();
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        let left = usize::try_from(self.limit - self.position).unwrap_or(usize::MAX);
        let wanted = left.min(self.ahead).min(self.buffer.len());
        let target = self.buffer.get_mut(..wanted).unwrap_or_default();
        let read = loop {
            match self.file.read(target) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (self.start, self.end) = (0, read);
        self.position += read as u64;
        Ok(())
    }
}
