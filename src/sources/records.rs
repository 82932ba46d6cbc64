//! Reads records of a fixed length.

use std::path::Path;

use regrow_actors::task::{Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};

use super::{
    file_input::FileInput,
    file_range::FileRange,
    file_source::{FileFormat, FileSource, ReadRange},
    file_splits::{Border, Borders},
    input_file::InputFile,
    read_error::ReadError,
    source::SplitProgress,
};
use crate::{
    chain::{Chain, ChainStart, Consume},
    data_set::DataSet,
    environment::Environment,
};

/// Bytes that are read at once, about.
const CHUNK_BYTES: usize = 256 << 10;

/// Files as records of a fixed length.
pub struct RecordSource(FileSource<FixedLength>);

impl Environment {
    /// Reads records of `length` bytes each, one after the other, without anything between them; of
    /// the same inputs as [`read_text`](Self::read_text).
    ///
    /// A file whose length is no multiple of `length` fails the job.
    pub fn read_records(&self, path: impl AsRef<Path>, length: u32) -> DataSet<'_, RecordSource> {
        if length == 0 {
            self.note_defect(format!(
                "records of {} would have a length of 0 bytes",
                path.as_ref().display()
            ));
        }
        let format = FixedLength { length: length.max(1) };
        DataSet::from_source(self, RecordSource(FileSource::new(self.input(path.as_ref()), format)))
    }
}

impl Chain for RecordSource {
    type Item = [u8];

    fn task<E: Consume<[u8]>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        self.0.task(deployment, end)
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        self.0.describe(names);
    }

    fn start(&self) -> ChainStart<'_> {
        self.0.start()
    }
}

/// The format of files of records of one length.
#[derive(Clone, Copy)]
pub(crate) struct FixedLength {
    /// At least 1.
    length: u32,
}

impl FileFormat for FixedLength {
    type Item = [u8];
    type Reader = RecordReader;

    const NAME: &'static str = "read_records";

    fn check(&self, file: &InputFile) -> Result<(), String> {
        let bytes = file.stamp.bytes;
        if file.is_gzip() || bytes.is_multiple_of(self.length.into()) {
            return Ok(());
        }
        Err(format!(
            "{} has {bytes} bytes, which is no multiple of the record length {}: {} would be left \
             over; it was cut, or has records of another length",
            file.path.display(),
            self.length,
            bytes % u64::from(self.length)
        ))
    }

    fn borders(&self) -> impl Borders {
        *self
    }

    fn open(&self, range: FileRange, record_bytes_max: u64) -> Result<RecordReader, ReadError> {
        RecordReader::open(&range, self.length, record_bytes_max)
    }
}

impl Borders for FixedLength {
    fn border(&mut self, _: &InputFile, _: u64, wanted: u64) -> Result<Border, String> {
        Ok(Border { offset: wanted.next_multiple_of(self.length.into()), line: 0 })
    }
}

/// Reads the records that start in a range.
pub(crate) struct RecordReader {
    input: FileInput,
    length: usize,
    /// Where the last of them ends.
    stop: u64,
    buffer: Vec<u8>,
    /// How much of the buffer is read, and how much of that was given away.
    filled: usize,
    given: usize,
}

impl RecordReader {
    fn open(range: &FileRange, length: u32, record_bytes_max: u64) -> Result<Self, ReadError> {
        if u64::from(length) > record_bytes_max {
            return Err(ReadError::TooLong {
                path: range.path.clone(),
                what: "record",
                place: format!("byte {}", range.start),
                bytes_max: record_bytes_max,
                hint: "",
            });
        }
        let bytes = range.end.saturating_sub(range.start);
        let stop = bytes.checked_next_multiple_of(length.into()).map(|bytes| range.start + bytes);
        let length = length as usize;
        Ok(Self {
            input: FileInput::open(range, range.start)?,
            length,
            stop: stop.unwrap_or(u64::MAX),
            buffer: vec![0; CHUNK_BYTES.next_multiple_of(length)],
            filled: 0,
            given: 0,
        })
    }

    /// The next records, whole; none at the end.
    fn next_records(&mut self) -> Result<&[u8], ReadError> {
        self.buffer.copy_within(self.given..self.filled, 0);
        self.filled -= self.given;
        self.given = 0;
        while self.filled < self.length {
            let left = self.stop.saturating_sub(self.input.position());
            let room = self.buffer.len() - self.filled;
            let room = usize::try_from(left).map_or(room, |left| room.min(left));
            let read = self.input.read(&mut self.buffer[self.filled..self.filled + room])?;
            if read == 0 {
                self.check_end()?;
                return Ok(&[]);
            }
            self.filled += read;
        }
        self.given = self.filled - self.filled % self.length;
        Ok(&self.buffer[..self.given])
    }

    fn check_end(&self) -> Result<(), ReadError> {
        self.input.check_unchanged()?;
        if self.filled == 0 {
            return Ok(());
        }
        let problem =
            format!("it ends with {} bytes, which are no record of {}", self.filled, self.length);
        let place = format!("byte {}", self.input.position() - self.filled as u64);
        Err(ReadError::BadRow { path: self.input.path().to_owned(), place, problem })
    }
}

impl ReadRange<[u8]> for RecordReader {
    fn read<E: Consume<[u8]>>(
        &mut self,
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<SplitProgress, TaskFailure> {
        let length = self.length;
        let records = self.next_records()?;
        if records.is_empty() {
            return Ok(SplitProgress::End);
        }
        for record in records.chunks_exact(length) {
            end.consume(record, context)?;
        }
        let metrics = context.metrics();
        metrics.records_in += (records.len() / length) as u64;
        metrics.bytes_in += records.len() as u64;
        Ok(SplitProgress::More)
    }
}

#[cfg(test)]
mod tests;
