//! What can go wrong in a store.

use std::{io, path::PathBuf};

use regrow_protocol::Epoch;
use thiserror::Error;

/// What can go wrong in a store; each variant is an action of the caller.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another process uses the store: end it or take another directory.
    #[error(
        "the store at {path} is in use by {owner}; wait until that ends, or use another data directory"
    )]
    InUse {
        /// Where.
        path: PathBuf,
        /// `process 1234`, or `another process` if its id cannot be told.
        owner: String,
    },
    /// A higher epoch was opened: step down.
    #[error("epoch {refused} was refused, because epoch {highest} has been opened")]
    Fenced {
        /// The caller's.
        refused: Epoch,
        /// The highest that the store knows of the run.
        highest: Epoch,
    },
    /// Another process may use the store from now on, or its directory is gone: step down.
    #[error("the store at {path} is not to be used any more: {reason}")]
    Withdrawn {
        /// Where.
        path: PathBuf,
        /// What happened.
        reason: String,
    },
    /// A write or sync failed: the handle is poisoned; reopen it before the next append.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An earlier write or sync failed: reopen first.
    #[error("the store at {path} is poisoned by an earlier failure; it must be reopened")]
    Poisoned {
        /// Where.
        path: PathBuf,
    },
    /// The store itself cannot be read (not: one log in it): a person must look.
    #[error("the store at {path} is damaged: {reason}")]
    Damaged {
        /// Where.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A version of Regrow that is not known here wrote it: use that version.
    #[error(
        "the store at {path} has format {found}, this program reads {supported}; \
         use the program that wrote it"
    )]
    Format {
        /// Where.
        path: PathBuf,
        /// Format found.
        found: u32,
        /// Format supported.
        supported: u32,
    },
    /// The call makes no sense: a mistake of the caller. Nothing was changed.
    #[error("the store cannot do this: {reason}")]
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
}
