//! One input of an attempt: the partitions of its producers, one after the other, wherever they lie.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use regrow_protocol::{
    DataDirectoryId, DirectoryLocation, Epoch, InputGate, ProducerPartition, TaskFailure,
    TaskMetrics,
};
use regrow_runtime::with_causes;
use regrow_shuffle::{FetchError, PartitionReader, RemoteInput, RemoteReader, RemoteReads};

/// Bytes that may be under way to one input, from all servers together: a thread that reads them as
/// fast as a fast network brings them never waits for credit.
const WINDOW_BYTES: usize = 1 << 20;

/// Least of it that each server gets: less would be sent in pieces that are not worth it.
const SERVER_WINDOW_BYTES_MIN: usize = 16 << 10;

/// How an attempt finds what it reads.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    /// The directory that holds all data directories of this host.
    pub(super) root: PathBuf,
    /// Where data directories are served.
    pub(super) locations: Arc<[DirectoryLocation]>,
    /// How this process reads of others; none where all directories are under its root.
    pub(super) remote: Option<Arc<RemoteReads>>,
    /// Epoch of the attempt.
    pub(super) epoch: Epoch,
    /// Ends all waits when it is set.
    pub(super) cancelled: Arc<AtomicBool>,
}

/// Where a data directory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the file system of this host.
    Here,
    /// From whoever listens there.
    At(SocketAddr),
    /// Nobody said.
    Unknown,
}

/// Reads the subpartitions of one producer after the other.
pub(super) struct Input {
    sources: Sources,
    /// Index of the next producer to open.
    next: usize,
    open: Open,
    places: BTreeMap<DataDirectoryId, Place>,
    servers: BTreeMap<SocketAddr, RemoteReader>,
}

/// What is being read.
enum Open {
    Nothing,
    Here(Box<PartitionReader>),
    At(SocketAddr),
}

impl Input {
    pub(super) fn new(sources: Sources) -> Self {
        let (places, servers) = (BTreeMap::new(), BTreeMap::new());
        Self { sources, next: 0, open: Open::Nothing, places, servers }
    }

    /// Reads the next block into `block`; false at the end of the last producer.
    pub(super) fn read_block(
        &mut self,
        gate: &InputGate,
        block: &mut Vec<u8>,
        metrics: &mut TaskMetrics,
    ) -> Result<bool, TaskFailure> {
        block.clear();
        if gate.subpartitions.start >= gate.subpartitions.end {
            return Ok(false);
        }
        loop {
            if self.read_open(block)? {
                metrics.bytes_in = metrics.bytes_in.saturating_add(block.len() as u64);
                return Ok(true);
            }
            let Some(producer) = gate.producers.get(self.next) else { return Ok(false) };
            let records = self.open(gate, *producer)?;
            self.next += 1;
            metrics.records_in = metrics.records_in.saturating_add(records);
        }
    }

    /// Reads the next block of what is open; false when there is none.
    fn read_open(&mut self, block: &mut Vec<u8>) -> Result<bool, TaskFailure> {
        let more = match &mut self.open {
            Open::Nothing => Ok(false),
            Open::Here(reader) => reader.next_block(block),
            Open::At(address) => match self.servers.get_mut(address) {
                Some(reader) => reader.next_block(block),
                None => Ok(false),
            },
        };
        let more = more.map_err(fetch_failure)?;
        if !more {
            self.open = Open::Nothing;
        }
        Ok(more)
    }

    /// Opens the partition of the next producer, and tells how many records of it come.
    fn open(&mut self, gate: &InputGate, producer: ProducerPartition) -> Result<u64, TaskFailure> {
        let ProducerPartition { partition, data_directory } = producer;
        let address = match self.place(data_directory) {
            Place::Here => {
                let (root, range) = (&self.sources.root, gate.subpartitions);
                let reader = PartitionReader::open(root, data_directory, partition, range)
                    .map_err(fetch_failure)?;
                let records = reader.records();
                self.open = Open::Here(Box::new(reader));
                return Ok(records);
            }
            Place::At(address) => address,
            Place::Unknown => {
                let reason = format!(
                    "nobody said where data directory {data_directory} is served, and it is not \
                     under {}",
                    self.sources.root.display()
                );
                return Err(TaskFailure::InputUnreachable { partition, reason });
            }
        };
        if !self.servers.contains_key(&address) {
            let Some(reader) = self.reader(gate, address) else {
                let reason = format!("this process reads nothing of {address}");
                return Err(TaskFailure::InputUnreachable { partition, reason });
            };
            self.servers.insert(address, reader);
        }
        let Some(reader) = self.servers.get_mut(&address) else { return Ok(0) };
        let records = reader.open_next().map_err(fetch_failure)?;
        self.open = Open::At(address);
        Ok(records)
    }

    /// A reader of all that one server has of the producers that are left.
    fn reader(&mut self, gate: &InputGate, address: SocketAddr) -> Option<RemoteReader> {
        let reads = Arc::clone(self.sources.remote.as_ref()?);
        let left = gate.producers.get(self.next..).unwrap_or_default();
        let mut partitions = Vec::new();
        let mut servers = BTreeSet::new();
        for producer in left {
            let Place::At(place) = self.place(producer.data_directory) else { continue };
            servers.insert(place);
            if place == address {
                partitions.push(*producer);
            }
        }
        let window = (WINDOW_BYTES / servers.len().max(1)).max(SERVER_WINDOW_BYTES_MIN);
        let input = RemoteInput {
            address,
            epoch: self.sources.epoch,
            subpartitions: gate.subpartitions,
            partitions,
            window_bytes: window as u64,
        };
        Some(RemoteReader::new(reads, input, Arc::clone(&self.sources.cancelled)))
    }

    /// Where a data directory is read: what stays so for the whole attempt.
    fn place(&mut self, data_directory: DataDirectoryId) -> Place {
        let sources = &self.sources;
        *self.places.entry(data_directory).or_insert_with(|| {
            // Where nothing is served to others, all directories are on this host.
            let all_here = sources.locations.is_empty();
            if all_here || sources.root.join(data_directory.to_string()).is_dir() {
                return Place::Here;
            }
            let told = |location: &&DirectoryLocation| location.data_directory == data_directory;
            let location = sources.locations.iter().find(told);
            location.map_or(Place::Unknown, |location| Place::At(location.address))
        })
    }
}

/// What an unreadable partition means for the attempt.
fn fetch_failure(error: FetchError) -> TaskFailure {
    let reason = with_causes(&error);
    match error {
        FetchError::Gone { partition, .. } | FetchError::Corrupt { partition, .. } => {
            TaskFailure::InputLost { partition, reason }
        }
        FetchError::Unreadable { partition, source, .. } => {
            if FetchError::is_out_of_descriptors(&source) {
                return TaskFailure::task(format!("{reason}; raise the limit of open files"));
            }
            // A disk that does not give back what was written: another try reads the same.
            TaskFailure::InputLost { partition, reason }
        }
        FetchError::OutOfRange { .. } => TaskFailure::unrecoverable(reason),
        FetchError::Unreachable { partition, reason } => {
            TaskFailure::InputUnreachable { partition, reason }
        }
        // Its master is not the last one, and hears so elsewhere; until then, nothing is lost.
        FetchError::Stale { partition, known } => {
            let reason = format!("a master of epoch {known} leads the run");
            TaskFailure::InputUnreachable { partition, reason }
        }
        FetchError::Stopped { .. } => TaskFailure::Cancelled,
    }
}

#[cfg(test)]
mod tests;
