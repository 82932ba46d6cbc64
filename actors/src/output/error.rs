//! Why output cannot be prepared or published.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Why output cannot be prepared or published; a person must look at the named path.
#[derive(Debug, Error)]
pub(crate) enum OutputError {
    /// The directory holds something already.
    #[error(
        "output directory {directory} is not empty: it holds {found:?}; \
         choose another directory, or pass --overwrite to replace its part files"
    )]
    NotEmpty {
        /// The output directory.
        directory: PathBuf,
        /// One thing that it holds.
        found: String,
    },
    /// Another run stages its files there, or was interrupted while it did.
    #[error(
        "output directory {directory} is in use by {owner}, which {stage}; resume or cancel that \
         job, or choose another directory; if nobody can resume it any more, remove {hidden}"
    )]
    OtherRun {
        /// The output directory.
        directory: PathBuf,
        /// The other run's hidden directory in it.
        hidden: PathBuf,
        /// Job and run.
        owner: String,
        /// How far it is.
        stage: &'static str,
    },
    /// Two sinks would write to the same place.
    #[error(
        "two sinks write to {first} and {second}, of which one holds the other; \
         give each sink a directory of its own"
    )]
    SharedDirectory {
        /// The outer directory, or the same.
        first: PathBuf,
        /// The inner one.
        second: PathBuf,
    },
    /// A path of a sink, or what it leads through, is no directory.
    #[error("the output path {path} is {found} and no directory; name a directory for the output")]
    NoDirectory {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// What has the name of a part file is none, so it can neither stay nor be replaced.
    #[error(
        "cannot replace {path}, which is {found}: --overwrite replaces plain files alone; move it \
         away, or choose another directory for the output"
    )]
    NoPartFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The run's hidden directory is gone, with all that was staged.
    #[error("staging directory {0} is gone; somebody removed it while the job ran")]
    HiddenDirectoryGone(PathBuf),
    /// Something is where a file is to be published.
    #[error(
        "cannot publish {path}: {found} is there, and no file as it was when the job committed; \
         move it away and run the job again"
    )]
    InTheWay {
        /// The final path.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// A staged file is gone, and not published either.
    #[error(
        "cannot publish {path}: its staged file {staged} is missing or changed; \
         run the job again"
    )]
    StagedFileGone {
        /// The final path.
        path: PathBuf,
        /// The staged path.
        staged: PathBuf,
    },
    /// A task chose a name that is no plain file name, or two chose the same.
    #[error("a task staged {name:?} for sink {sink}: {reason}")]
    BadName {
        /// Index of the sink.
        sink: u32,
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The manifest or owner file cannot be understood.
    #[error("{path} is damaged, or written by another version of this program")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the decoder said.
        source: serde_json::Error,
    },
    /// The disk refused.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
