//! The role of a stand-alone shuffle service: keeps what the `TaskManagers` of its host wrote.

use std::net::SocketAddr;

use crossbeam_channel::Receiver;
use regrow_protocol::{DataDirectoryId, Role, WorkerId};

use super::{
    ClusterError, StillLooking, WorkerSetup,
    worker_process::{WorkerNews, WorkerProcess},
};
use crate::{random_bits::random_bits, worker::WorkerDirectories};

/// A stand-alone shuffle service, before it runs: a worker without slots, whose data directory
/// others write.
pub struct ShuffleServiceRole {
    /// What every worker is told.
    pub setup: WorkerSetup,
}

/// What a shuffle service tells whoever started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShuffleServiceNews {
    /// It takes connections.
    Listening(SocketAddr),
    /// It found no leader for long; it goes on looking.
    NoLeader(StillLooking),
    /// It keeps a directory, and `TaskManagers` may write there.
    Keeps {
        /// Which one; the same after a restart.
        data_directory: DataDirectoryId,
    },
}

impl ShuffleServiceRole {
    /// Runs until `stop` speaks, on threads of its own. What it keeps stays.
    ///
    /// # Errors
    /// When another service keeps the directory, it cannot be used, or the actors died.
    pub fn run(
        self,
        stop: &Receiver<()>,
        mut news: impl FnMut(ShuffleServiceNews),
    ) -> Result<(), ClusterError> {
        let worker = WorkerId::from_bits(random_bits()?);
        let new = DataDirectoryId::from_bits(random_bits()?);
        let directories = WorkerDirectories::keep(&self.setup.shuffle_directory(), new)
            .map_err(ClusterError::DataDirectory)?;
        news(ShuffleServiceNews::Keeps { data_directory: directories.id() });
        WorkerProcess {
            setup: self.setup,
            worker,
            slots: 0,
            directories,
            role: Role::ShuffleService,
        }
        .run(stop, |said| match said {
            WorkerNews::Listening(address) => news(ShuffleServiceNews::Listening(address)),
            WorkerNews::NoLeader(looking) => news(ShuffleServiceNews::NoLeader(looking)),
        })
    }
}
