//! Where records come from.

mod csv;
mod custom;
mod file_input;
mod file_range;
mod file_source;
mod file_splits;
mod input_file;
mod input_path;
mod numbers;
mod read_error;
mod records;
mod source;
mod split_task;
mod text;

pub(crate) use csv::{ColumnCount, first_row};
pub use csv::{CsvFormat, CsvSource};
pub(crate) use input_path::InputPath;
pub use records::RecordSource;
pub use source::{Listing, Source, SourceError, SourceSplit, SplitProgress, SplitReader};
pub use text::TextSource;
