//! The role of a stand-alone shuffle service: keeps what the `TaskManagers` of its host wrote.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use crossbeam_channel::Receiver;
use regrow_protocol::{DataDirectoryId, Role, WorkerId};
use regrow_runtime::Options;

use super::{
    ClusterError, ClusterIdentity, DataPlace, StillLooking,
    worker_process::{WorkerNews, WorkerProcess},
};
use crate::{random_bits::random_bits, task::TaskFactory, worker::WorkerDirectories};

/// A stand-alone shuffle service, before it runs: a worker without slots, whose data directory
/// others write.
pub struct ShuffleServiceRole {
    /// Which cluster it works for.
    pub identity: ClusterIdentity,
    /// Where it keeps partitions, and where the address of the leader may stand.
    pub data_directory: PathBuf,
    /// `host:port` of `JobManagers`; empty to look into the data directory.
    pub leaders: Vec<String>,
    /// Where other hosts read its partitions.
    pub data_place: DataPlace,
    /// Settings of the process.
    pub options: Options,
    /// The program's jobs.
    pub factory: Arc<dyn TaskFactory>,
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
        let directories = WorkerDirectories::keep(&self.data_directory.join("shuffle"), new)
            .map_err(ClusterError::DataDirectory)?;
        news(ShuffleServiceNews::Keeps { data_directory: directories.id() });
        WorkerProcess {
            identity: self.identity,
            worker,
            data_directory: self.data_directory,
            leaders: self.leaders,
            data_place: self.data_place,
            slots: 0,
            directories,
            role: Role::ShuffleService,
            options: self.options,
            factory: self.factory,
        }
        .run(stop, |said| match said {
            WorkerNews::Listening(address) => news(ShuffleServiceNews::Listening(address)),
            WorkerNews::NoLeader(looking) => news(ShuffleServiceNews::NoLeader(looking)),
        })
    }
}
