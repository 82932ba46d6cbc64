//! The bytes of the records that start in a range of a file of CSV.

use std::io;

use super::{csv_format::CsvFormat, record_scanner::RecordScanner};
use crate::sources::{file_input::FileInput, file_range::FileRange, read_error::ReadError};

/// Gives the bytes of the records that start in a range, and ends where the last of them does.
pub(super) struct CsvInput {
    input: FileInput,
    scanner: RecordScanner,
    /// No record that starts here or later is given.
    end: u64,
    record_bytes_max: u64,
    /// Up to where the bytes that were given belong to records that were taken.
    taken: u64,
    state: State,
}

enum State {
    Reading,
    Done,
    Failed(Failure),
}

/// Why the bytes cannot be given.
pub(super) enum Failure {
    /// The file cannot be read.
    Read(ReadError),
    /// A quote at this offset is never closed.
    OpenQuote(u64),
    /// The record that starts at this offset does not fit into memory.
    LongRecord(u64),
}

impl CsvInput {
    /// Opens the file of `range`, which begins with a record.
    pub(super) fn open(
        range: &FileRange,
        format: &CsvFormat,
        record_bytes_max: u64,
    ) -> Result<Self, ReadError> {
        Ok(Self {
            input: FileInput::open(range, range.start)?,
            scanner: RecordScanner::new(format, range.start),
            end: range.end,
            record_bytes_max,
            taken: range.start,
            state: State::Reading,
        })
    }

    /// Notes that the records before `offset` were taken.
    #[inline]
    pub(super) fn note_taken(&mut self, offset: u64) {
        self.taken = offset;
    }

    /// Bytes of a record at most.
    pub(super) fn record_bytes_max(&self) -> u64 {
        self.record_bytes_max
    }

    /// What went wrong, if something did; to be asked once.
    pub(super) fn take_failure(&mut self) -> Option<Failure> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Failed(failure) => Some(failure),
            State::Reading | State::Done => None,
        }
    }

    /// Checks that the file is still what was listed.
    pub(super) fn check_unchanged(&self) -> Result<(), ReadError> {
        self.input.check_unchanged()
    }

    fn next_bytes(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        // What comes next belongs to a record that was not taken: all before it was.
        if self.scanner.position() - self.taken > self.record_bytes_max {
            return Err(Failure::LongRecord(self.taken));
        }
        let read = self.input.read(buffer).map_err(Failure::Read)?;
        if read == 0 {
            self.state = State::Done;
            return self.scanner.open_quote().map_or(Ok(0), |quote| Err(Failure::OpenQuote(quote)));
        }
        let bytes = &buffer[..read];
        let before = self.end.saturating_sub(1).saturating_sub(self.scanner.position());
        let before = usize::try_from(before).map_or(read, |before| before.min(read));
        self.scanner.advance(&bytes[..before]);
        if before == read {
            return Ok(read);
        }
        let Some(length) = self.scanner.advance_to_end(&bytes[before..]) else { return Ok(read) };
        self.state = State::Done;
        Ok(before + length)
    }
}

impl io::Read for CsvInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !matches!(self.state, State::Reading) {
            return Ok(0);
        }
        self.next_bytes(buffer).map_err(|failure| {
            self.state = State::Failed(failure);
            io::Error::other("the input says why")
        })
    }
}
