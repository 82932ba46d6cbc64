//! The ends of a job: data sets that are written to files.

use std::{fmt::Display, path::Path};

use serde::Serialize;

use super::{
    csv::Csv,
    csv_options::CsvOptions,
    file_sink::{FileSink, Format},
    json_lines::JsonLines,
    raw_bytes::RawBytes,
    text::Text,
};
use crate::{chain::Chain, data_set::DataSet};

/// A last step of a job: a data set is written somewhere. A builder gives all of them back, so that
/// none is forgotten; see [`Sinks`](crate::Sinks).
#[derive(Debug)]
#[must_use = "a builder gives back all that its job writes"]
pub struct Written {
    _private: (),
}

impl Written {
    /// Says that the records of a vertex have a place.
    pub(crate) const fn new() -> Self {
        Self { _private: () }
    }
}

impl<C: Chain> DataSet<'_, C> {
    /// Writes each record as a line of CSV (RFC 4180, without a header) to files
    /// `part-00000.csv`, ... in `directory`, which appear together when the job has finished.
    pub fn write_csv(self, directory: impl AsRef<Path>) -> Written
    where
        C::Item: Serialize,
    {
        self.write_csv_with(directory, CsvOptions::default())
    }

    /// Like [`write_csv`](Self::write_csv), with a header or another delimiter.
    pub fn write_csv_with(self, directory: impl AsRef<Path>, options: CsvOptions) -> Written
    where
        C::Item: Serialize,
    {
        if let Some(defect) = options.defect() {
            self.environment.note_defect(defect);
        }
        self.write_files("write_csv", directory.as_ref(), Csv(options))
    }

    /// Writes each record as a line, as it is displayed, to files `part-00000.txt`, ... in
    /// `directory`, which appear together when the job has finished.
    ///
    /// A record that holds a line feed, or ends with a carriage return, fails the job: a reader of
    /// lines would take it for others.
    pub fn write_text(self, directory: impl AsRef<Path>) -> Written
    where
        C::Item: Display,
    {
        self.write_files("write_text", directory.as_ref(), Text)
    }

    /// Writes each record as a line of JSON to files `part-00000.jsonl`, ... in `directory`, which
    /// appear together when the job has finished. A number that JSON has no form for (an infinity,
    /// what is no number) becomes `null`.
    pub fn write_json_lines(self, directory: impl AsRef<Path>) -> Written
    where
        C::Item: Serialize,
    {
        self.write_files("write_json_lines", directory.as_ref(), JsonLines)
    }

    /// Writes the bytes of each record as they are, one after the other, to files `part-00000.bin`,
    /// ... in `directory`, which appear together when the job has finished. Nothing stands between
    /// them: records of one length, or such as tell their end, can be read again.
    pub fn write_records(self, directory: impl AsRef<Path>) -> Written
    where
        C::Item: AsRef<[u8]>,
    {
        self.write_files("write_records", directory.as_ref(), RawBytes)
    }

    /// Ends the vertex with a sink for files.
    fn write_files<F>(self, name: &'static str, directory: &Path, format: F) -> Written
    where
        F: Format<C::Item>,
    {
        let environment = self.environment;
        let vertex = self.end(name, move |chain, deployment| {
            chain.task(deployment, FileSink::new(deployment, format.clone())?)
        });
        environment.add_sink(vertex, directory);
        Written::new()
    }
}
