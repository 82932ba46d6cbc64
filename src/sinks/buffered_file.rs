//! A file to which records are appended in memory, and written many at once.

use std::io::{self, Write};

use regrow_protocol::TaskFailure;

use super::{file_sink::write_failure, staged_output::StagedOutput};

/// A staged file with the records that are not written to it yet.
pub(crate) struct BufferedFile<W = StagedOutput> {
    output: W,
    buffer: Vec<u8>,
    /// From here on the buffer is written.
    full_bytes: usize,
}

impl<W: Write> BufferedFile<W> {
    /// Makes one that keeps about `buffer_bytes` in memory.
    pub(crate) fn new(output: W, buffer_bytes: usize) -> Self {
        Self { output, buffer: Vec::new(), full_bytes: buffer_bytes }
    }

    /// Appends what `encode` appends, as one record.
    #[inline]
    pub(crate) fn append(
        &mut self,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), TaskFailure>,
    ) -> Result<(), TaskFailure> {
        encode(&mut self.buffer)?;
        if self.buffer.len() < self.full_bytes {
            return Ok(());
        }
        self.write_out().map_err(write_failure)
    }

    /// Writes what is in memory, and gives the file back.
    pub(crate) fn close(mut self) -> io::Result<W> {
        self.write_out()?;
        Ok(self.output)
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.output.write_all(&self.buffer)?;
        self.buffer.clear();
        // One huge record does not hold its memory to the end.
        self.buffer.shrink_to(self.full_bytes.saturating_mul(2));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes the size of each write.
    #[derive(Default)]
    struct Writes(Vec<usize>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn small_records_go_out_in_few_large_writes_and_none_is_held_back() {
        let mut file = BufferedFile::new(Writes::default(), 1 << 10);
        let mut append = |bytes: usize| {
            file.append(|buffer| {
                buffer.resize(buffer.len() + bytes, 0);
                Ok(())
            })
            .unwrap();
        };
        (0..300).for_each(|_| append(10));
        append(1 << 20);
        append(3);
        assert!(file.buffer.capacity() <= 2 << 10);
        let Writes(sizes) = file.close().unwrap();
        assert_eq!(sizes, [1030, 1030, (300 - 206) * 10 + (1 << 20), 3]);
    }

    #[test]
    fn a_record_that_is_refused_is_told() {
        let mut file = BufferedFile::new(Writes::default(), 1 << 10);
        let refused = file.append(|_| Err(TaskFailure::unrecoverable("no")));
        assert_eq!(refused, Err(TaskFailure::unrecoverable("no")));
    }
}
