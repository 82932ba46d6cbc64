//! What every process that is a worker is told, whether it runs tasks or keeps what others wrote.

use std::{path::PathBuf, sync::Arc};

use regrow_runtime::Options;

use super::{ClusterIdentity, DataPlace};
use crate::task::TaskFactory;

/// What a [`TaskManager`](super::TaskManager) and a stand-alone shuffle service have in common.
pub struct WorkerSetup {
    /// Which cluster it works for.
    pub identity: ClusterIdentity,
    /// Where partitions are kept, and where the address of the leader may stand.
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

impl WorkerSetup {
    /// Where the data directories of partitions are.
    pub(super) fn shuffle_directory(&self) -> PathBuf {
        self.data_directory.join("shuffle")
    }
}
