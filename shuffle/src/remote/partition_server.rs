//! Serves the partitions of one process to readers on other hosts.

use std::{
    collections::BTreeMap,
    io::{self, BufReader, Cursor, Read as _},
    net::{Shutdown, TcpStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use regrow_protocol::{DataDirectoryId, Epoch, RunId};
use tracing::debug;

use super::{outbox::Outbox, serving::Serving};
use crate::data_directory::DataDirectory;

/// Stack of the thread of a connection, which calls nothing deep.
const STACK_BYTES: usize = 256 << 10;

/// Bytes of what a reader says that are read at once.
const INPUT_BYTES: usize = 1 << 10;

/// How much a [`PartitionServer`] gives to its readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections at a time; one more is closed at once, and its reader comes again. Each takes a
    /// thread and 128 KiB, and the index entries that it sends twice: 40 bytes for each region and
    /// subpartition that is read, 5 MiB at most.
    pub connections_max: usize,
    /// A reader that says nothing and takes nothing for this long loses its connection, and makes
    /// a new one when it goes on.
    pub idle_timeout: Duration,
}

/// Serves the partitions of one process to readers on other hosts, each connection on a thread of
/// its own: what a reader is waiting for is a file.
#[derive(Debug)]
pub struct PartitionServer {
    /// The root of each data directory.
    roots: BTreeMap<DataDirectoryId, PathBuf>,
    limits: ServerLimits,
    /// The highest epoch of each run that the process was told of.
    epochs: Mutex<BTreeMap<RunId, Epoch>>,
    connections: Mutex<Connections>,
}

#[derive(Debug, Default)]
struct Connections {
    open: BTreeMap<u64, Arc<TcpStream>>,
    count: u64,
    closed: bool,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self { connections_max: 2_048, idle_timeout: Duration::from_mins(2) }
    }
}

impl PartitionServer {
    /// A server of what lies in `directories`, now and later.
    pub fn new<'a>(
        directories: impl IntoIterator<Item = &'a DataDirectory>,
        limits: ServerLimits,
    ) -> Self {
        let root = |directory: &DataDirectory| (directory.id(), directory.root().to_owned());
        Self {
            roots: directories.into_iter().map(root).collect(),
            limits,
            epochs: Mutex::default(),
            connections: Mutex::default(),
        }
    }

    /// Serves a reader that has introduced itself, until it leaves; `read` is what was read of it
    /// since then. `guard` is dropped when the connection ends.
    ///
    /// # Errors
    /// When there are too many connections, or the system refuses a thread: the connection is
    /// closed, and its reader tries again.
    pub fn serve(
        self: &Arc<Self>,
        stream: TcpStream,
        read: Vec<u8>,
        guard: impl Send + 'static,
    ) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(self.limits.idle_timeout))?;
        stream.set_write_timeout(Some(self.limits.idle_timeout))?;
        let stream = Arc::new(stream);
        let connection = self.enter(&stream)?;
        let server = Arc::clone(self);
        let serve = move || {
            let input = Cursor::new(read).chain(BufReader::with_capacity(INPUT_BYTES, &*stream));
            let ended = Serving::new(&server, Outbox::new(&stream, input)).run();
            debug!(?ended, "a reader of partitions left");
            server.connections().open.remove(&connection);
            drop(guard);
        };
        let thread = thread::Builder::new().name("regrow-serve".to_owned()).stack_size(STACK_BYTES);
        if let Err(error) = thread.spawn(serve) {
            self.connections().open.remove(&connection);
            return Err(error);
        }
        Ok(())
    }

    /// A run is led in `epoch`: readers of an older one are refused.
    pub fn raise(&self, run: RunId, epoch: Epoch) {
        let mut epochs = self.epochs();
        let known = epochs.entry(run).or_default();
        *known = epoch.max(*known);
    }

    /// Nothing of a run is left here.
    pub fn forget(&self, run: RunId) {
        self.epochs().remove(&run);
    }

    /// How many readers are connected.
    pub fn connections_open(&self) -> usize {
        self.connections().open.len()
    }

    /// Closes all connections, and takes no more.
    pub fn close(&self) {
        let mut connections = self.connections();
        connections.closed = true;
        for stream in connections.open.values() {
            // One that is closed already needs nothing.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// The epoch in which a run is led, if that is later than `epoch`.
    pub(super) fn later_epoch(&self, run: RunId, epoch: Epoch) -> Option<Epoch> {
        self.epochs().get(&run).copied().filter(|known| *known > epoch)
    }

    /// The root of a data directory that is served here.
    pub(super) fn root(&self, directory: DataDirectoryId) -> Option<&Path> {
        self.roots.get(&directory).map(PathBuf::as_path)
    }

    fn enter(&self, stream: &Arc<TcpStream>) -> io::Result<u64> {
        let mut connections = self.connections();
        let limit = self.limits.connections_max;
        if connections.closed || connections.open.len() >= limit {
            let text = format!("{limit} readers of partitions are connected, or this is the end");
            return Err(io::Error::other(text));
        }
        connections.count += 1;
        let connection = connections.count;
        connections.open.insert(connection, Arc::clone(stream));
        Ok(connection)
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn epochs(&self) -> MutexGuard<'_, BTreeMap<RunId, Epoch>> {
        self.epochs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
