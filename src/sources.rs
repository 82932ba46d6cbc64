//! Where records come from.

mod file_input;
mod file_range;
mod file_source;
mod file_splits;
mod input_file;
mod input_path;
mod read_error;
mod records;
mod source;
mod split_task;
mod text;

pub(crate) use input_path::InputPath;
pub use records::RecordSource;
pub use source::SplitProgress;
pub use text::TextSource;
