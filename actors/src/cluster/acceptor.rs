//! Takes connections and finds out who calls.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    sync::Arc,
};

use bytes::BytesMut;
use regrow_protocol::{Hello, Role};
use regrow_runtime::with_causes;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Handle,
    sync::Semaphore,
    task::JoinHandle,
};
use tracing::{debug, info, warn};

use crate::net::{LinkLimits, handshake};

/// Connections that are open at a time at most, those included that have not said who they are.
const CONNECTIONS_MAX: usize = 16_384;

/// How long the system is left alone when it has no descriptors left.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// What an acceptor is told at its start.
pub(crate) struct AcceptorConfig {
    /// Address to listen on.
    pub(crate) host: IpAddr,
    /// The first free port of these is taken; 0 is any.
    pub(crate) ports: RangeInclusive<u16>,
    pub(crate) limits: LinkLimits,
    /// What this process, which listens at the address, says first; asked anew for each caller,
    /// since a standby may come to lead.
    pub(crate) hello: Arc<dyn Fn(SocketAddr) -> Hello + Send + Sync>,
    /// Who gets the callers that may talk to us. Dropping the caller closes its connection.
    pub(crate) arrived: Arc<dyn Fn(Caller) + Send + Sync>,
}

/// Somebody who said who they are and may talk to us.
pub(crate) struct Caller {
    pub(crate) peer: SocketAddr,
    pub(crate) role: Role,
    pub(crate) stream: TcpStream,
    /// What was read beyond the `Hello`.
    pub(crate) read: BytesMut,
    /// Given back when the connection ends; none of whom this side called.
    pub(crate) permit: Option<tokio::sync::OwnedSemaphorePermit>,
}

/// Takes connections until it is dropped.
pub(crate) struct Acceptor {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Acceptor {
    /// Listens.
    ///
    /// # Errors
    /// When no port of the range is free, or the address is none of this host's.
    pub(crate) fn start(config: AcceptorConfig, io: &Handle) -> io::Result<Self> {
        let listener = bind(config.host, config.ports.clone())?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let _entered = io.enter();
        let listener = TcpListener::from_std(listener)?;
        let task = io.spawn(accept(listener, address, Arc::new(config)));
        Ok(Self { address, task })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn bind(host: IpAddr, ports: RangeInclusive<u16>) -> io::Result<std::net::TcpListener> {
    let mut refused = io::Error::new(io::ErrorKind::InvalidInput, "the range holds no port");
    for port in ports.clone() {
        match std::net::TcpListener::bind((host, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => refused = error,
        }
    }
    let (first, last) = (ports.start(), ports.end());
    let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
    Err(io::Error::new(refused.kind(), format!("cannot listen on {host}:{range}: {refused}")))
}

async fn accept(listener: TcpListener, address: SocketAddr, config: Arc<AcceptorConfig>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let config = Arc::clone(&config);
                let hello = (config.hello)(address);
                tokio::spawn(async move { greet(stream, peer, hello, permit, &config).await });
            }
            // The caller left meanwhile, or descriptors are short: neither ends the listening.
            Err(error) => {
                warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn greet(
    mut stream: TcpStream,
    peer: SocketAddr,
    ours: Hello,
    permit: tokio::sync::OwnedSemaphorePermit,
    config: &AcceptorConfig,
) {
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "small messages may wait");
    }
    match handshake(&mut stream, &ours, config.limits).await {
        Ok((hello, read)) => {
            let role = hello.role;
            (config.arrived)(Caller { peer, role, stream, read, permit: Some(permit) });
        }
        Err(error) => info!(%peer, error = %with_causes(&error), "a connection is refused"),
    }
}
