//! Sources of a user's own: what they list and how they are read.

use std::io;

use regrow_protocol::TaskFailure;
use regrow_runtime::Determinacy;
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

use crate::{operators::Emitter, record::Record};

/// A source of a user's own: it lists its splits, once, and opens them, each in the task that reads
/// it. [`read_from`](crate::Environment::read_from) puts it at the beginning of a job.
///
/// A split is read in one task, and again when that task runs again: it must then hold the same. All
/// that a split needs to be opened is in it, and in what the job's arguments say of the source.
pub trait Source: Send + Sync + 'static {
    /// A piece of the input. It is stored with the events of the job: a path and a range, not the
    /// records.
    type Split: Serialize + DeserializeOwned;
    /// Reads one split.
    type Reader: SplitReader;

    /// Lists the splits: many small ones, so that all tasks have work to the end. Called when the
    /// job begins, on a thread of its own, and not while the job is built.
    ///
    /// # Errors
    /// When the input cannot be listed, with what was tried and what to do; it fails the job.
    fn discover(&self) -> Result<Vec<SourceSplit<Self::Split>>, String>;

    /// Lists splits that hold a small part of the input, for who must know how its records are
    /// distributed; all splits, unless there is something smaller.
    ///
    /// # Errors
    /// As [`discover`](Self::discover).
    fn sample(&self) -> Result<Vec<SourceSplit<Self::Split>>, String> {
        self.discover()
    }

    /// Opens a split.
    ///
    /// # Errors
    /// When it cannot be opened.
    fn open(&self, split: Self::Split) -> Result<Self::Reader, SourceError>;

    /// How long what was listed can be read.
    fn listing(&self) -> Listing {
        Listing::Durable
    }

    /// Whether a split holds the same records in the same order whenever it is read.
    fn determinacy(&self) -> Determinacy {
        Determinacy::Determinate
    }
}

/// Reads one split of a [`Source`].
pub trait SplitReader: Send + 'static {
    /// What it holds.
    type Item: Record;

    /// Emits the next records, about until [`Emitter::is_full`], and says whether there may be more.
    /// Between two calls the task passes the records on, and stops if it was cancelled.
    ///
    /// # Errors
    /// When the split cannot be read on.
    fn read(&mut self, out: &mut Emitter<Self::Item>) -> Result<SplitProgress, SourceError>;
}

/// A piece of the input of a [`Source`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSplit<S> {
    /// What the reader is opened with.
    pub split: S,
    /// How much there is to read, about: the number of tasks is decided by it.
    pub size_bytes: u64,
}

/// Whether a split has more records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitProgress {
    /// It may have: read on.
    More,
    /// It has none.
    End,
}

/// How long the splits of a listing can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// As long as the input stays as it is. Splits survive the job's coordinator.
    Durable,
    /// As long as the coordinator lives that asked for them: cursors of a query, signed links. If it
    /// dies before all splits are read, or what was made of them is lost while it is needed, the
    /// source is listed again, and read again as a whole.
    OneListing,
}

/// Why a split cannot be opened or read.
#[derive(Debug, Error)]
pub enum SourceError {
    /// Another try may succeed: the task runs again, as often as the job's restart strategy allows.
    #[error("{0}")]
    TryAgain(String),
    /// The input is wrong, and stays so: the job fails.
    #[error("{0}")]
    BadInput(String),
}

/// Data that are no data are bad input; anything else may pass.
impl From<io::Error> for SourceError {
    fn from(error: io::Error) -> Self {
        let is_bad = matches!(
            error.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof
        );
        let text = error.to_string();
        if is_bad { Self::BadInput(text) } else { Self::TryAgain(text) }
    }
}

impl From<SourceError> for TaskFailure {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::TryAgain(text) => Self::task(text),
            SourceError::BadInput(text) => Self::unrecoverable(text),
        }
    }
}
