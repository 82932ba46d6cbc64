//! The ends of a job: data sets that are written to files.

use std::path::Path;

use serde::Serialize;

use super::{
    csv::Csv,
    file_sink::{FileSink, Format},
    raw_bytes::RawBytes,
};
use crate::{chain::Chain, data_set::DataSet};

/// The last step of a job: it is written somewhere.
#[derive(Debug)]
pub struct Written {
    _private: (),
}

impl<C: Chain> DataSet<'_, C> {
    /// Writes each record as a line of CSV (RFC 4180, without a header) to files
    /// `part-00000.csv`, ... in `directory`, which appear together when the job has finished.
    pub fn write_csv(self, directory: impl AsRef<Path>) -> Written
    where
        C::Item: Serialize,
    {
        self.write_files("write_csv", directory.as_ref(), Csv)
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
        Written { _private: () }
    }
}
