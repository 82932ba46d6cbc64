//! Copies segments from one file to the end of another.

use std::io::{Read, Seek, SeekFrom};

use crate::{
    disk_error::{DiskError, During},
    segment::Segment,
    temporary::TemporaryFile,
};

/// Bytes that are written at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// Copies segments from one file to the end of another, with large writes.
pub(crate) struct SegmentCopier<'a> {
    from: &'a TemporaryFile,
    to: &'a TemporaryFile,
    buffer: Vec<u8>,
    filled: usize,
}

impl<'a> SegmentCopier<'a> {
    /// Copies from `from` to `to`, whose cursor stands at its end.
    pub(crate) fn new(from: &'a TemporaryFile, to: &'a TemporaryFile) -> Self {
        Self { from, to, buffer: vec![0; BUFFER_BYTES], filled: 0 }
    }

    /// Adds the bytes of a segment.
    pub(crate) fn copy(&mut self, segment: &Segment) -> Result<(), DiskError> {
        let mut from = self.from.file();
        from.seek(SeekFrom::Start(segment.offset)).during("seek in", self.from.path())?;
        let mut rest = segment.length;
        while rest > 0 {
            if self.filled == self.buffer.len() {
                self.flush()?;
            }
            let free = self.buffer.get_mut(self.filled..).unwrap_or_default();
            let now = usize::try_from(rest).unwrap_or(usize::MAX).min(free.len());
            let part = free.get_mut(..now).unwrap_or_default();
            from.read_exact(part).during("read blocks back from", self.from.path())?;
            self.filled += now;
            rest -= now as u64;
        }
        Ok(())
    }

    /// Writes what was not written yet.
    pub(crate) fn flush(&mut self) -> Result<(), DiskError> {
        let filled = self.buffer.get(..self.filled).unwrap_or_default();
        self.to.write(filled).during("write blocks to", self.to.path())?;
        self.filled = 0;
        Ok(())
    }
}
