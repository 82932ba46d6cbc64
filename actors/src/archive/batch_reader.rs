//! Reads the batches of an archived job, one behind the other.

use std::{
    fs::File,
    io::{self, BufReader, Read as _, Seek as _, SeekFrom},
};

/// A file of the archive, behind its first line.
pub(super) struct BatchReader {
    file: BufReader<File>,
    at: u64,
    end: u64,
}

/// What stands before a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: usize,
    pub(super) checksum: u32,
}

impl BatchReader {
    /// Reads on where `file` is.
    pub(super) fn new(mut file: BufReader<File>) -> io::Result<Self> {
        let at = file.stream_position()?;
        let end = file.get_ref().metadata()?.len();
        Ok(Self { file, at, end })
    }

    /// Offset in the file.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Reads on elsewhere.
    pub(super) fn go_to(&mut self, at: u64) -> io::Result<()> {
        self.at = self.file.seek(SeekFrom::Start(at))?;
        Ok(())
    }

    /// What stands before the next batch; none at the end, or where the file is damaged.
    pub(super) fn head(&mut self) -> io::Result<Option<Head>> {
        let mut bytes = [0; 8];
        if self.end.saturating_sub(self.at) < bytes.len() as u64 {
            return Ok(None);
        }
        self.file.read_exact(&mut bytes)?;
        self.at += bytes.len() as u64;
        let [a, b, c, d, rest @ ..] = bytes;
        let length = u32::from_le_bytes([a, b, c, d]);
        if u64::from(length) > self.end - self.at {
            return Ok(None);
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        Ok(Some(Head { length, checksum: u32::from_le_bytes(rest) }))
    }

    /// The batch behind its head; none if it is damaged.
    pub(super) fn batch(&mut self, head: Head) -> io::Result<Option<Vec<u8>>> {
        let mut batch = vec![0; head.length];
        self.file.read_exact(&mut batch)?;
        self.at += head.length as u64;
        Ok((crc32c::crc32c(&batch) == head.checksum).then_some(batch))
    }

    /// Goes behind the batch with this checksum; says whether there is one. If not, nothing is left.
    pub(super) fn go_behind(&mut self, checksum: u32) -> io::Result<bool> {
        while let Some(head) = self.head()? {
            self.file.seek_relative(i64::try_from(head.length).unwrap_or(i64::MAX))?;
            self.at += head.length as u64;
            if head.checksum == checksum {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
