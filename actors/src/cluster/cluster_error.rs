//! Why a role of a cluster cannot start or go on.

use std::{
    io,
    path::{Path, PathBuf},
};

use regrow_shuffle::DirectoryError;
use regrow_store::StoreError;
use thiserror::Error;

use super::LeadershipLoss;

/// Why a role of a cluster cannot start or go on. No job was harmed.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// No address to listen on.
    #[error(
        "cannot take connections; give an address of this host and a port, or a range, that is free"
    )]
    Listen(#[source] io::Error),
    /// The system refuses a thread.
    #[error("cannot start a thread; allow more threads to this user")]
    Thread(#[source] io::Error),
    /// A directory cannot be used.
    #[error("cannot {action} {path}")]
    Directory {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The data directories of partitions cannot be used.
    #[error("cannot keep partitions")]
    DataDirectory(#[source] DirectoryError),
    /// The event store cannot be opened.
    #[error("cannot open the event store")]
    Store(#[source] StoreError),
    /// The workers of this process cannot be started, or died.
    #[error("cannot run a worker")]
    Worker(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The system gives no random numbers, of which ids are made.
    #[error("cannot read random numbers from the system")]
    Random(#[from] getrandom::Error),
    /// The actors of this process died.
    #[error("the actors of this process ended; its log says why")]
    Ended,
    /// No leader was found in time.
    #[error(
        "no JobManager that leads was found; tried {tried}; start one, or name its address with \
         -D jobmanager.rpc.addresses=HOST:PORT"
    )]
    NoLeader {
        /// Which addresses, with what each said.
        tried: String,
    },
    /// Another cluster is led in the data directory.
    #[error(
        "cannot stand by in {directory}: cluster \"{leads}\" is led there, and this process is of \
         \"{ours}\"; set high-availability.cluster-id to the same value, or name another directory"
    )]
    OtherCluster {
        /// Which one.
        directory: PathBuf,
        /// Whose it is.
        leads: String,
        /// Of which this process is.
        ours: String,
    },
    /// The data directory was taken away from the process that led it.
    #[error(
        "stopped leading: {directory} was deleted or moved away, for {found}; workers keep what \
         they wrote. If it was moved, start a JobManager with --data-dir where it is now; if it was \
         deleted, its record of jobs is gone: start a JobManager, and submit them again"
    )]
    DirectoryLost {
        /// Which one.
        directory: PathBuf,
        /// What was found there.
        found: LeadershipLoss,
    },
    /// The leader refused what was asked for.
    #[error("{0}")]
    Refused(String),
}

impl ClusterError {
    pub(crate) fn directory(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Directory { action, path: path.to_owned(), source }
    }
}
