//! Where records leave a job.

mod buffered_file;
mod csv;
mod file_sink;
mod raw_bytes;
mod staged_output;
#[cfg(test)]
mod tests;
mod written;

pub use written::Written;
