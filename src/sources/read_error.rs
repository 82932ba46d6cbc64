//! Why a file cannot be read as it was to be.

use std::{io, path::PathBuf};

use regrow_protocol::TaskFailure;
use thiserror::Error;

use super::input_file::FileStamp;

/// Why a file cannot be read as it was to be.
#[derive(Debug, Error)]
pub(crate) enum ReadError {
    /// The system refuses it: another try may succeed.
    #[error("cannot read {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// It is no longer there.
    #[error(
        "{path} was there when the input was listed, and is gone; put it back, or run the job again \
         under another id to read what is there now"
    )]
    Gone { path: PathBuf },
    /// It is another file than the one that was listed, or was written to.
    #[error(
        "{path} changed since the input was listed: it had {} bytes, modified at {}.{:09}, and has \
         {} bytes, modified at {}.{:09}; let the input stay as it is while a job reads it, and run \
         the job again under another id",
        listed.bytes, listed.modified_s, listed.modified_ns,
        found.bytes, found.modified_s, found.modified_ns
    )]
    Changed { path: PathBuf, listed: FileStamp, found: FileStamp },
    /// The file is shorter than it was when it was divided: what is left is not what the job reads.
    #[error(
        "{path} ends before byte {end}, up to which it was to be read: it was cut or replaced while \
         the job ran; run the job again when its input stays as it is"
    )]
    Shrunk { path: PathBuf, end: u64 },
    /// The file is no gzip file, or only the beginning of one.
    #[error(
        "{path} is damaged or no gzip file: {source} after {offset} bytes of content; check it with \
         gzip -t, and copy it again"
    )]
    BadGzip { path: PathBuf, offset: u64, source: io::Error },
    /// The file is no text in UTF-8.
    #[error("{path} is not valid UTF-8 at byte {offset}; convert the file, for example with iconv")]
    NotUtf8 { path: PathBuf, offset: u64 },
    /// A line or record does not fit into the memory of the task.
    #[error(
        "a {what} of {path}, which starts at {place}, is longer than {bytes_max} bytes; raise \
         taskmanager.memory.task.size to four times its length{hint}"
    )]
    TooLong { path: PathBuf, what: &'static str, place: String, bytes_max: u64, hint: &'static str },
    /// A row of a table is not what the job takes.
    #[error("cannot read {path}, {place}: {problem}")]
    BadRow { path: PathBuf, place: String, problem: String },
}

impl From<ReadError> for TaskFailure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io { .. } => Self::task(error.to_string()),
            ReadError::Gone { .. }
            | ReadError::Changed { .. }
            | ReadError::Shrunk { .. }
            | ReadError::BadGzip { .. }
            | ReadError::NotUtf8 { .. }
            | ReadError::TooLong { .. }
            | ReadError::BadRow { .. } => Self::unrecoverable(error.to_string()),
        }
    }
}
