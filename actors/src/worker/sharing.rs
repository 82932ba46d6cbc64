//! How a worker shares partitions with those of other hosts.

use std::{net::SocketAddr, sync::Arc};

use regrow_shuffle::{PartitionServer, RemoteReads};

/// How a worker shares partitions with those of other hosts. By default it does not: then all are
/// under one root.
#[derive(Clone, Debug, Default)]
pub struct Sharing {
    /// Where it serves its partitions.
    pub address: Option<SocketAddr>,
    /// What serves them there; it is told who leads the runs that it has partitions of.
    pub server: Option<Arc<PartitionServer>>,
    /// How it reads those of others.
    pub reads: Option<RemoteReads>,
}
