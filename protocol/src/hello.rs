//! The first message of each side of a connection.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::WorkerDescription;

/// Version of what is said on connections. A peer of another version is refused.
pub const PROTOCOL_VERSION: u32 = 1;

/// What a connection of Regrow begins with, so that others are told apart at once.
const MAGIC: &str = "regrow";

/// The first message of each side of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    magic: String,
    protocol_version: u32,
    /// Which cluster the sender belongs to.
    pub cluster_id: String,
    /// Hash of the jobs that the sender's program offers; compared between a `JobManager` and its
    /// workers, none for a client of another program.
    pub registry: Option<u64>,
    /// What the sender is.
    pub role: Role,
}

/// What a process is in its cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Leads the jobs of the cluster.
    JobManager,
    /// Could lead, and waits until the leader is gone.
    Standby {
        /// Where the leader listens, if that is known.
        leader: Option<String>,
    },
    /// Runs tasks and keeps what they wrote.
    TaskManager(WorkerDescription),
    /// Keeps what `TaskManagers` of its host wrote.
    ShuffleService(WorkerDescription),
    /// Submits jobs and asks about them.
    Client,
    /// Reads partitions of whoever listens.
    PartitionReader,
}

/// Why a connection is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HelloError {
    /// Whoever is there speaks another language.
    #[error("the peer is no process of Regrow")]
    Stranger,
    /// It is another version of Regrow.
    #[error(
        "the peer speaks protocol version {theirs}, and this process version {ours}; run the same \
         version everywhere"
    )]
    Version {
        /// Of the peer.
        theirs: u32,
        /// Of this process.
        ours: u32,
    },
    /// It belongs elsewhere.
    #[error(
        "the peer belongs to cluster {theirs:?}, and this process to {ours:?}; set \
         high-availability.cluster-id to the same value, or connect to another address"
    )]
    Cluster {
        /// Of the peer.
        theirs: String,
        /// Of this process.
        ours: String,
    },
    /// Its program offers other jobs.
    #[error(
        "the peer's program offers other jobs (registry {theirs:016x}) than this one (registry \
         {ours:016x}); run the same program everywhere"
    )]
    Registry {
        /// Of the peer.
        theirs: u64,
        /// Of this process.
        ours: u64,
    },
}

impl Hello {
    /// Bytes of an encoded one at most: who sends more is not one of us.
    pub const BYTES_MAX: usize = 64 << 10;

    /// What a process of `cluster_id` says first.
    pub fn new(cluster_id: String, registry: Option<u64>, role: Role) -> Self {
        Self {
            magic: MAGIC.to_owned(),
            protocol_version: PROTOCOL_VERSION,
            cluster_id,
            registry,
            role,
        }
    }

    /// Checks what a peer said against what this process says; both sides do, so both name the
    /// difference.
    ///
    /// # Errors
    /// The first difference: close the connection.
    pub fn check(&self, theirs: &Self) -> Result<(), HelloError> {
        if theirs.magic != MAGIC {
            return Err(HelloError::Stranger);
        }
        if theirs.protocol_version != self.protocol_version {
            let (theirs, ours) = (theirs.protocol_version, self.protocol_version);
            return Err(HelloError::Version { theirs, ours });
        }
        if theirs.cluster_id != self.cluster_id {
            let (theirs, ours) = (theirs.cluster_id.clone(), self.cluster_id.clone());
            return Err(HelloError::Cluster { theirs, ours });
        }
        match (theirs.registry, self.registry) {
            (Some(theirs), Some(ours)) if theirs != ours => {
                Err(HelloError::Registry { theirs, ours })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello::new("default".to_owned(), Some(1), Role::JobManager)
    }

    #[test]
    fn fault_45_each_difference_is_named_with_both_values() {
        let ours = hello();
        let differ = |change: fn(&mut Hello)| {
            let mut theirs = hello();
            change(&mut theirs);
            ours.check(&theirs).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(differ(|hello| hello.magic.clear()).contains("no process of Regrow"));
        let version = differ(|hello| hello.protocol_version = 7);
        assert!(version.contains("version 7") && version.contains("version 1"), "{version}");
        let cluster = differ(|hello| hello.cluster_id = "other".to_owned());
        assert!(cluster.contains("other") && cluster.contains("default"), "{cluster}");
        let registry = differ(|hello| hello.registry = Some(2));
        assert!(registry.contains("0002") && registry.contains("0001"), "{registry}");
        assert_eq!(differ(|hello| hello.registry = None), "");
        assert_eq!(differ(|_| ()), "");
    }

    #[test]
    fn a_hello_of_a_later_version_is_read_far_enough_to_be_refused() {
        #[derive(Serialize)]
        struct Later {
            magic: &'static str,
            protocol_version: u32,
            cluster_id: &'static str,
            registry: Option<u64>,
            role: Role,
            shoe_size: u32,
        }
        let later = Later {
            magic: MAGIC,
            protocol_version: 2,
            cluster_id: "default",
            registry: None,
            role: Role::Client,
            shoe_size: 44,
        };
        let read: Hello = crate::decode(&crate::encode(&later).unwrap()).unwrap();
        assert_eq!(hello().check(&read), Err(HelloError::Version { theirs: 2, ours: 1 }));
    }
}
