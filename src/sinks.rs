//! Where records go.

mod csv;
mod staged_output;

pub(crate) use csv::CsvSink;
