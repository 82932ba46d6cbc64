//! Reads CSV into records of any type that serde can make of a row.

mod column_count;
mod csv_format;
mod csv_input;
mod csv_reader;
mod record_scanner;
mod scanned_borders;

use std::{
    marker::PhantomData,
    path::{Path, PathBuf},
};

use regrow_actors::task::Task;
use regrow_protocol::{TaskDeployment, TaskFailure};
use serde::{Serialize, de::DeserializeOwned};

pub(crate) use self::column_count::ColumnCount;
pub use self::csv_format::CsvFormat;
use self::{csv_reader::CsvReader, scanned_borders::ScannedBorders};
use super::{
    file_range::FileRange,
    file_source::{FileFormat, FileSource},
    file_splits::Borders,
    input_file::InputFile,
    input_path::InputPath,
    read_error::ReadError,
};
use crate::{
    chain::{Chain, ChainStart, Consume},
    data_set::DataSet,
    environment::Environment,
};

/// Longest first row that is looked at before a task begins.
const FIRST_ROW_BYTES_MAX: u64 = 1 << 20;

/// Files of CSV as records of type `T`.
pub struct CsvSource<T>(FileSource<Csv<T>>);

impl Environment {
    /// Reads CSV (RFC 4180) whose first row names the columns: of the same inputs as
    /// [`read_text`](Self::read_text), each file with a header of its own.
    ///
    /// A struct gets its fields by their names, wherever their columns stand; columns that it does
    /// not have are skipped. A tuple gets them by their order. A quoted field may hold line breaks.
    ///
    /// A row that has more or fewer fields than the header, a field that does not parse, and text
    /// that is not UTF-8 fail the job, with the file and the line.
    ///
    /// A file larger than a split (4 MiB) is scanned once for quotes before it is read, to find rows
    /// at which it can be cut.
    ///
    /// ```
    /// # use regrow::*;
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Visit {
    ///     user: String,
    ///     bytes: u64,
    /// }
    /// # fn build(env: &Environment) -> Written {
    /// env.read_csv::<Visit>("visits.csv").filter(|visit| visit.bytes > 0).write_json_lines("visits")
    /// # }
    /// ```
    pub fn read_csv<T>(&self, path: impl AsRef<Path>) -> DataSet<'_, CsvSource<T>>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
    {
        self.read_csv_with(path, CsvFormat::default())
    }

    /// Like [`read_csv`](Self::read_csv), in another format.
    pub fn read_csv_with<T>(
        &self,
        path: impl AsRef<Path>,
        format: CsvFormat,
    ) -> DataSet<'_, CsvSource<T>>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
    {
        if let Some(defect) = format.defect() {
            self.note_defect(defect);
        }
        let csv = Csv { format, record_type: PhantomData };
        DataSet::from_source(self, CsvSource(FileSource::new(self.input(path.as_ref()), csv)))
    }
}

/// The path of the one file of `input`, and its first row, without fields if there is none.
pub(crate) fn first_row(
    input: &InputPath,
    format: &CsvFormat,
) -> Result<(PathBuf, Vec<String>), String> {
    let file = one_file(input)?;
    let reader = open_head(FileRange::whole(&file), format).map_err(|error| error.to_string())?;
    let fields = reader.head().into_iter().flatten().map(str::to_owned).collect();
    Ok((file.path, fields))
}

/// Opens a file for its first row, of which no more is read than [`FIRST_ROW_BYTES_MAX`].
fn open_head(range: FileRange, format: &CsvFormat) -> Result<CsvReader<()>, ReadError> {
    CsvReader::open(range, format, FIRST_ROW_BYTES_MAX).map_err(|error| {
        let ReadError::TooLong { path, place, hint, .. } = error else { return error };
        let problem = format!(
            "the first row is longer than {FIRST_ROW_BYTES_MAX} bytes, the most that is read to \
             find the columns; shorten it{hint}"
        );
        ReadError::BadRow { path, place, problem }
    })
}

/// The one file of `input`.
fn one_file(input: &InputPath) -> Result<InputFile, String> {
    let mut files = input.list()?;
    if files.len() > 1 {
        let paths: Vec<_> = files.iter().map(|file| file.path.display().to_string()).collect();
        return Err(format!("one file is needed where there are several: {}", paths.join(", ")));
    }
    files.pop().ok_or_else(|| "one file is needed where there is none".to_owned())
}

impl<T: Serialize + DeserializeOwned + Send + 'static> Chain for CsvSource<T> {
    type Item = T;

    fn task<E: Consume<T>>(
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

/// The format of files of CSV.
pub(crate) struct Csv<T> {
    format: CsvFormat,
    record_type: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned + Send + 'static> FileFormat for Csv<T> {
    type Item = T;
    type Reader = CsvReader<T>;

    const NAME: &'static str = "read_csv";

    fn borders(&self) -> impl Borders {
        ScannedBorders::new(&self.format)
    }

    fn open(&self, range: FileRange, record_bytes_max: u64) -> Result<CsvReader<T>, ReadError> {
        CsvReader::open(range, &self.format, record_bytes_max)
    }
}

#[cfg(test)]
mod tests;
