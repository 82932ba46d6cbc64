//! Reads the records that start in a range of a file of CSV.

use std::marker::PhantomData;

use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord};
use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;
use serde::de::DeserializeOwned;

use super::{
    csv_format::{CsvFormat, Header, Quotes},
    csv_input::{CsvInput, Failure},
};
use crate::{
    chain::Consume,
    sources::{
        file_input::FileInput, file_range::FileRange, file_source::ReadRange,
        read_error::ReadError, source::SplitProgress,
    },
};

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Bytes that are read at once where only the first row is wanted.
const HEAD_CHUNK_BYTES: usize = 4 << 10;

/// Records that are passed on between two looks at whether the task was cancelled.
const BATCH_RECORDS: usize = 1024;

/// Names of columns that an error lists at most.
const NAMES_MAX: usize = 20;

/// Reads the records that start in a range.
pub(crate) struct CsvReader<T> {
    range: FileRange,
    reader: Reader<CsvInput>,
    /// The first row of the file; none of a file without rows.
    head: Option<StringRecord>,
    header: Header,
    record: StringRecord,
    record_type: PhantomData<fn() -> T>,
}

impl<T> CsvReader<T> {
    /// Opens a range, which begins with a record.
    pub(super) fn open(
        range: FileRange,
        format: &CsvFormat,
        record_bytes_max: u64,
    ) -> Result<Self, ReadError> {
        let whole = FileRange { start: 0, first_line: 1, end: range.end, ..range.clone() };
        let mut this = Self::begin(whole, format, record_bytes_max, HEAD_CHUNK_BYTES)?;
        if this.next()? {
            this.head = Some(this.record.clone());
        }
        let head = this.head.take();
        let starts_with_head = range.start == 0 && format.header == Header::Names;
        let mut this = Self::begin(range, format, record_bytes_max, CHUNK_BYTES)?;
        if starts_with_head {
            this.next()?;
        }
        this.head = head;
        Ok(this)
    }

    /// The first row of the file; none of a file without rows.
    pub(super) fn head(&self) -> Option<&StringRecord> {
        self.head.as_ref()
    }

    /// Checks that the file is still what was listed.
    pub(super) fn check_unchanged(&self) -> Result<(), ReadError> {
        self.reader.get_ref().check_unchanged()
    }

    fn begin(
        range: FileRange,
        format: &CsvFormat,
        record_bytes_max: u64,
        chunk_bytes: usize,
    ) -> Result<Self, ReadError> {
        let input = CsvInput::open(&range, format, record_bytes_max)?;
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(format.delimiter_byte())
            .quoting(format.quotes == Quotes::Enclose)
            .buffer_capacity(chunk_bytes)
            .from_reader(input);
        let (head, record) = (None, StringRecord::new());
        Ok(Self { range, reader, head, header: format.header, record, record_type: PhantomData })
    }

    /// Reads the next record; false at the end.
    #[inline]
    fn next(&mut self) -> Result<bool, ReadError> {
        match self.reader.read_record(&mut self.record) {
            Ok(more) => {
                let offset = self.range.start + self.reader.position().byte();
                self.reader.get_mut().note_taken(offset);
                Ok(more)
            }
            Err(error) => Err(self.failure(error)),
        }
    }

    #[inline]
    fn check_length(&self) -> Result<(), ReadError> {
        let expected = self.head.as_ref().map_or(0, StringRecord::len);
        let found = self.record.len();
        if found == expected {
            return Ok(());
        }
        let first = match self.header {
            Header::Names => "header",
            Header::None => "first row",
        };
        let fields =
            |count| if count == 1 { "1 field".to_owned() } else { format!("{count} fields") };
        let problem = format!(
            "the row has {}, and the {first} of the file has {}: {}",
            fields(found),
            fields(expected),
            self.columns()
        );
        Err(self.bad_record(problem))
    }

    /// The names of the columns, or the first row.
    fn columns(&self) -> String {
        let fields: Vec<&str> = self.head.iter().flatten().take(NAMES_MAX).collect();
        let more = self.head.as_ref().is_some_and(|head| head.len() > NAMES_MAX);
        format!("{}{}", fields.join(", "), if more { ", ..." } else { "" })
    }

    fn failure(&mut self, error: csv::Error) -> ReadError {
        match self.reader.get_mut().take_failure() {
            Some(Failure::Read(error)) => return error,
            Some(Failure::OpenQuote(offset)) => {
                return self
                    .bad_row(offset, "a quoted field begins here and never ends".to_owned());
            }
            Some(Failure::LongRecord(offset)) => return self.too_long(offset),
            None => {}
        }
        let position = error.position().map_or(0, csv::Position::byte);
        let problem = if let ErrorKind::Utf8 { err, .. } = error.kind() {
            let column = err.field() + 1;
            format!("column {column} is not valid UTF-8; convert the file, for example with iconv")
        } else {
            error.to_string()
        };
        self.bad_row(self.range.start + position, problem)
    }

    fn bad_record(&self, problem: String) -> ReadError {
        let position = self.record.position().map_or(0, csv::Position::byte);
        self.bad_row(self.range.start + position, problem)
    }

    /// What stands at `offset` is wrong.
    fn bad_row(&self, offset: u64, problem: String) -> ReadError {
        ReadError::BadRow { path: self.range.path.clone(), place: self.place(offset), problem }
    }

    fn too_long(&self, offset: u64) -> ReadError {
        ReadError::TooLong {
            path: self.range.path.clone(),
            what: "row",
            place: self.place(offset),
            bytes_max: self.reader.get_ref().record_bytes_max(),
            hint: ", or add the quote that is missing at the end of a field",
        }
    }

    /// The line at `offset`, or of the next one that is not empty. Only an error asks for it, so the
    /// file is read again.
    fn place(&self, offset: u64) -> String {
        match self.line(offset) {
            Ok(line) => format!("line {line}"),
            Err(_) => format!("the row at byte {offset}"),
        }
    }

    fn line(&self, offset: u64) -> Result<u64, ReadError> {
        let mut input = FileInput::open(&self.range, self.range.start)?;
        let mut line = self.range.first_line;
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let start = input.position();
            let read = input.read(&mut buffer)?;
            let bytes = &buffer[..read];
            let before = usize::try_from(offset.saturating_sub(start)).unwrap_or(read).min(read);
            let rest = &bytes[before..];
            let blank = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            line += memchr::memchr_iter(b'\n', &bytes[..before + blank]).count() as u64;
            if read == 0 || blank < rest.len() {
                return Ok(line);
            }
        }
    }
}

impl<T: DeserializeOwned> CsvReader<T> {
    /// The next record; none at the end.
    #[inline]
    pub(super) fn next_value(&mut self) -> Result<Option<T>, ReadError> {
        if !self.next()? {
            self.check_unchanged()?;
            return Ok(None);
        }
        self.check_length()?;
        self.value().map(Some)
    }

    #[inline]
    fn value(&self) -> Result<T, ReadError> {
        let names = match self.header {
            Header::Names => self.head.as_ref(),
            Header::None => None,
        };
        self.record.deserialize(names).map_err(|error| self.unparsed(&error))
    }

    fn unparsed(&self, error: &csv::Error) -> ReadError {
        let ErrorKind::Deserialize { err, .. } = error.kind() else {
            return self.bad_record(error.to_string());
        };
        let index = err.field().and_then(|field| usize::try_from(field).ok());
        let Some(index) = index else {
            return self.bad_record(format!(
                "the row is no {}: {}; its columns are {}",
                std::any::type_name::<T>(),
                err.kind(),
                self.columns()
            ));
        };
        let name = match self.header {
            Header::Names => self.head.as_ref().and_then(|head| head.get(index)),
            Header::None => None,
        };
        let name = name.map_or_else(String::new, |name| format!(" ({name})"));
        let field = self.record.get(index).unwrap_or_default();
        self.bad_record(format!("column {}{name} is {field:?}: {}", index + 1, err.kind()))
    }
}

impl<T: DeserializeOwned + 'static> ReadRange<T> for CsvReader<T> {
    fn read<E: Consume<T>>(
        &mut self,
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<SplitProgress, TaskFailure> {
        let start = self.reader.position().byte();
        let mut progress = SplitProgress::More;
        let mut records = 0;
        while records < BATCH_RECORDS {
            let Some(value) = self.next_value()? else {
                progress = SplitProgress::End;
                break;
            };
            end.consume(&value, context)?;
            records += 1;
        }
        let metrics = context.metrics();
        metrics.records_in += records as u64;
        metrics.bytes_in += self.reader.position().byte() - start;
        Ok(progress)
    }
}
