//! Where records leave a job.

mod buffered_file;
mod csv;
mod csv_options;
mod file_sink;
mod json_lines;
mod raw_bytes;
mod several;
mod staged_output;
#[cfg(test)]
mod tests;
mod text;
mod written;

pub use csv_options::CsvOptions;
pub use several::Sinks;
pub use written::Written;
