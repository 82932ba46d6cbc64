//! Counts the columns of one file of CSV.

use super::{csv_format::CsvFormat, one_file, open_head};
use crate::{
    operators::Emitter,
    sources::{
        InputPath, Source, SourceError, SourceSplit, SplitProgress, SplitReader,
        file_range::FileRange, read_error::ReadError,
    },
};

/// The number of columns of the one file of an input, as a record; 0 of a file without rows.
pub(crate) struct ColumnCount {
    input: InputPath,
    format: CsvFormat,
}

impl ColumnCount {
    /// Counts those of `input`.
    pub(crate) const fn new(input: InputPath, format: CsvFormat) -> Self {
        Self { input, format }
    }
}

impl Source for ColumnCount {
    type Split = FileRange;
    type Reader = Counted;

    fn discover(&self) -> Result<Vec<SourceSplit<FileRange>>, String> {
        let range = FileRange::whole(&one_file(&self.input)?);
        Ok(vec![SourceSplit { split: range, size_bytes: 0 }])
    }

    fn open(&self, range: FileRange) -> Result<Counted, SourceError> {
        let reader = open_head(range, &self.format)?;
        reader.check_unchanged()?;
        Ok(Counted(reader.head().map_or(0, csv::StringRecord::len) as u64))
    }
}

/// What was counted.
pub(crate) struct Counted(u64);

impl SplitReader for Counted {
    type Item = u64;

    fn read(&mut self, out: &mut Emitter<u64>) -> Result<SplitProgress, SourceError> {
        out.emit(self.0);
        Ok(SplitProgress::End)
    }
}

impl From<ReadError> for SourceError {
    fn from(error: ReadError) -> Self {
        let may_pass = matches!(error, ReadError::Io { .. });
        let text = error.to_string();
        if may_pass { Self::TryAgain(text) } else { Self::BadInput(text) }
    }
}
