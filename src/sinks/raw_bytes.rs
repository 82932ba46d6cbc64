//! Writes the bytes of records as they are.

use std::io;

use regrow_protocol::TaskFailure;

use super::{buffered_file::BufferedFile, file_sink::Format, staged_output::StagedOutput};

/// Records one after the other, without anything between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawBytes;

impl<R: AsRef<[u8]> + ?Sized> Format<R> for RawBytes {
    const EXTENSION: &'static str = "bin";

    type File = BufferedFile;

    fn open(&self, output: StagedOutput, buffer_bytes: usize) -> Result<Self::File, TaskFailure> {
        Ok(BufferedFile::new(output, buffer_bytes))
    }

    #[inline]
    fn append(&self, record: &R, file: &mut BufferedFile) -> Result<(), TaskFailure> {
        file.append(|buffer| {
            buffer.extend_from_slice(record.as_ref());
            Ok(())
        })
    }

    fn close(file: BufferedFile) -> io::Result<StagedOutput> {
        file.close()
    }
}
