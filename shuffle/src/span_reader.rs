//! Buffered sequential reads that never read past what is wanted.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

/// Most bytes that are read ahead: fits the cache of a core, and longer reads are not faster.
const BUFFER_BYTES_MAX: u64 = 128 << 10;

/// Reads spans of a file, one after another, with a buffer for what is short.
#[derive(Debug)]
pub(crate) struct SpanReader {
    file: File,
    buffer: Vec<u8>,
    /// What the buffer holds and nobody has read.
    start: usize,
    end: usize,
    /// Offset in the file of the next byte to read.
    position: u64,
    /// Offset in the file up to which may be read ahead.
    limit: u64,
}

impl SpanReader {
    /// Reads from `file`, altogether `total` bytes.
    pub(crate) fn new(file: File, total: u64) -> Self {
        let capacity = usize::try_from(total.min(BUFFER_BYTES_MAX)).unwrap_or_default();
        Self { file, buffer: vec![0; capacity], start: 0, end: 0, position: 0, limit: 0 }
    }

    /// Whether all up to `to` may be read ahead from where the reader stands at `from`.
    pub(crate) fn is_within(&self, from: u64, to: u64) -> bool {
        self.position == from && to <= self.limit
    }

    /// Goes to `from`; all up to `to` will be read.
    pub(crate) fn go_to(&mut self, from: u64, to: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(from))?;
        (self.start, self.end) = (0, 0);
        (self.position, self.limit) = (from, to);
        Ok(())
    }

    /// Fills `out` with the next bytes.
    pub(crate) fn read_exact(&mut self, out: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < out.len() {
            let rest = out.get_mut(filled..).unwrap_or_default();
            let mut buffered = self.buffer.get(self.start..self.end).unwrap_or_default();
            if !buffered.is_empty() {
                let now = buffered.read(rest)?;
                self.start += now;
                filled += now;
            } else if rest.len() >= self.buffer.len() {
                // Long blocks go straight to where they are wanted.
                self.file.read_exact(rest)?;
                filled = out.len();
            } else {
                self.fill(filled)?;
            }
        }
        self.position += out.len() as u64;
        Ok(())
    }

    /// Reads ahead; `taken` bytes before the cursor are not counted in the position yet.
    fn fill(&mut self, taken: usize) -> io::Result<()> {
        let wanted = self.limit.saturating_sub(self.position + taken as u64);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX).min(self.buffer.len());
        (self.start, self.end) = (0, 0);
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
        self.end = read;
        Ok(())
    }
}
