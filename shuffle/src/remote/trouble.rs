//! What can go wrong between a reader and a server.

use std::io;

use regrow_protocol::ReadRefusal;

use crate::trailer::TrailerError;

/// What can go wrong between a reader and a server; each variant is an action of the reader.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The connection cannot be made, or broke: connect again.
    Broken(String),
    /// The server says no.
    Refused(ReadRefusal),
    /// What came is not what was written: ask once more, since it may have been the way.
    Damaged(String),
    /// The reader was told to stop.
    Stopped,
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<TrailerError> for Trouble {
    fn from(error: TrailerError) -> Self {
        match error {
            TrailerError::Damaged(reason) => Self::Damaged(reason),
            TrailerError::Unreadable(error) => error.into(),
        }
    }
}
