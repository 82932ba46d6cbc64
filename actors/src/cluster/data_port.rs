//! The port of a worker: where other hosts read its partitions, and leaders call that it may not
//! know.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    sync::{Arc, OnceLock},
};

use actix::Recipient;
use regrow_protocol::{Hello, Role, WorkerDescription};
use regrow_runtime::with_causes;
use regrow_shuffle::{PartitionServer, RemoteReads, ServerLimits};
use tokio::runtime::Handle;
use tracing::{info, warn};

use super::{
    ClusterError, ClusterIdentity,
    acceptor::{Acceptor, AcceptorConfig, Caller},
    master_link::MasterCalled,
};
use crate::{
    net::LinkLimits,
    worker::{Sharing, WorkerDirectories},
};

/// Where a worker listens, and under which address other hosts reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPlace {
    /// Address to listen on.
    pub bind_host: IpAddr,
    /// The first free port of these is taken; 0 is any.
    pub ports: RangeInclusive<u16>,
    /// Address that others are told; none for the one that it listens on.
    pub host: Option<IpAddr>,
}

/// The open port of a worker. Dropped, it serves nobody any more.
pub(crate) struct DataPort {
    acceptor: Acceptor,
    /// What others are told.
    address: SocketAddr,
    server: Arc<PartitionServer>,
    masters: Arc<OnceLock<Recipient<MasterCalled>>>,
}

/// What a port is told at its start.
pub(crate) struct DataPortConfig<'a> {
    pub(crate) place: DataPlace,
    pub(crate) identity: ClusterIdentity,
    pub(crate) limits: LinkLimits,
    /// The worker, without its address.
    pub(crate) worker: WorkerDescription,
    /// What it says it is.
    pub(crate) role: fn(WorkerDescription) -> Role,
    /// What it serves.
    pub(crate) directories: &'a WorkerDirectories,
}

impl DataPlace {
    /// The address that others are told of a worker that listens on `bound`.
    fn told(&self, bound: SocketAddr) -> SocketAddr {
        SocketAddr::new(self.host.unwrap_or_else(|| bound.ip()), bound.port())
    }

    /// Refuses what would tell others an address that is none.
    fn check(&self) -> io::Result<()> {
        let told = self.host.unwrap_or(self.bind_host);
        if !told.is_unspecified() {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "other hosts cannot read partitions at {told}: set taskmanager.host to the \
                 address under which they reach this host"
            ),
        ))
    }
}

impl DataPort {
    /// Listens.
    ///
    /// # Errors
    /// When no port of the range is free, or the address is none of this host's or of any.
    pub(crate) fn open(config: DataPortConfig<'_>, io: &Handle) -> Result<Self, ClusterError> {
        let DataPortConfig { place, identity, limits, worker, role, directories } = config;
        place.check().map_err(ClusterError::Listen)?;
        let kept = directories.served();
        let kept = kept.iter().map(|directory| &**directory);
        let server = Arc::new(PartitionServer::new(kept, ServerLimits::default()));
        let masters = Arc::<OnceLock<Recipient<MasterCalled>>>::default();
        let (serving, telling) = (Arc::clone(&server), place.clone());
        let calling = Arc::clone(&masters);
        let hello = move |bound: SocketAddr| {
            let shuffle_address = Some(telling.told(bound));
            let worker = WorkerDescription { shuffle_address, ..worker };
            Hello::new(identity.cluster_id.clone(), Some(identity.registry), role(worker))
        };
        let config = AcceptorConfig {
            host: place.bind_host,
            ports: place.ports.clone(),
            limits,
            hello: Arc::new(hello),
            arrived: Arc::new(move |caller| receive(&serving, calling.get(), caller)),
        };
        let acceptor = Acceptor::start(config, io).map_err(ClusterError::Listen)?;
        let address = place.told(acceptor.address());
        Ok(Self { acceptor, address, server, masters })
    }

    /// Has leaders that call passed on; those that call before are sent away.
    pub(crate) fn pass_on(&self, masters: Recipient<MasterCalled>) {
        // Said once.
        let _ = self.masters.set(masters);
    }

    /// Where it listens.
    pub(crate) fn bound(&self) -> SocketAddr {
        self.acceptor.address()
    }

    /// Where others reach it.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How the worker behind it shares partitions, that reads those of others as `reads` says.
    pub(crate) fn sharing(&self, reads: RemoteReads) -> Sharing {
        let server = Some(Arc::clone(&self.server));
        Sharing { address: Some(self.address), server, reads: Some(reads) }
    }
}

impl Drop for DataPort {
    fn drop(&mut self) {
        self.server.close();
    }
}

fn receive(
    server: &Arc<PartitionServer>,
    masters: Option<&Recipient<MasterCalled>>,
    caller: Caller,
) {
    match (&caller.role, masters) {
        (Role::PartitionReader, _) => serve(server, caller),
        (Role::JobManager, Some(masters)) => masters.do_send(MasterCalled(caller)),
        (
            Role::JobManager
            | Role::Standby { .. }
            | Role::TaskManager(_)
            | Role::ShuffleService(_)
            | Role::Client,
            _,
        ) => {
            info!(peer = %caller.peer, "only readers and leaders have something to say here");
        }
    }
}

fn serve(server: &Arc<PartitionServer>, caller: Caller) {
    let Caller { peer, stream, read, permit, role: _ } = caller;
    let taken = stream.into_std().and_then(|stream| server.serve(stream, read.to_vec(), permit));
    if let Err(error) = taken {
        warn!(%peer, error = %with_causes(&error), "a reader of partitions is sent away");
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn others_are_told_an_address_that_they_can_reach() {
        let bound = SocketAddr::from(([0, 0, 0, 0], 7_000));
        let place = |host: Option<Ipv4Addr>| DataPlace {
            bind_host: bound.ip(),
            ports: 0..=0,
            host: host.map(IpAddr::V4),
        };
        let error = place(None).check().unwrap_err().to_string();
        assert!(error.contains("taskmanager.host"), "{error}");
        let told = place(Some(Ipv4Addr::new(10, 0, 0, 7)));
        assert!(told.check().is_ok());
        assert_eq!(told.told(bound), SocketAddr::from(([10, 0, 0, 7], 7_000)));
    }
}
