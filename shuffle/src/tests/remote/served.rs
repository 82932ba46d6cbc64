//! A data directory that is served over TCP.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use regrow_protocol::{
    Epoch, Hello, PartitionId, ProducerPartition, Role, SubpartitionRange, encode,
};

use crate::{
    DataDirectory, FetchError, PartitionServer, RemoteInput, RemoteReader, RemoteReads,
    ServerLimits,
};

/// A server that listens, until it is dropped.
pub(super) struct Served {
    pub(super) server: Arc<PartitionServer>,
    pub(super) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub(super) fn new(directory: &DataDirectory) -> Self {
        Self::with(directory, ServerLimits::default(), 0)
    }

    /// A server with limits, on a port; 0 is any.
    pub(super) fn with(directory: &DataDirectory, limits: ServerLimits, port: u16) -> Self {
        let server = Arc::new(PartitionServer::new([directory], limits));
        let serving = Arc::clone(&server);
        let answer = move |mut stream: TcpStream| {
            if introduce(&mut stream, Role::PartitionReader, &hello()) {
                // One that is refused is closed.
                let _ = serving.serve(stream, Vec::new(), ());
            }
        };
        let (address, stop, thread) = listen(port, answer);
        Self { server, address, stop, thread: Some(thread) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.close();
        self.stop.store(true, Ordering::Release);
        // Wakes the listener.
        drop(TcpStream::connect(self.address));
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Answers each connection with `answer` until it is told to stop.
pub(super) fn listen(
    port: u16,
    mut answer: impl FnMut(TcpStream) + Send + 'static,
) -> (SocketAddr, Arc<AtomicBool>, JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let thread = thread::spawn(move || {
        for stream in listener.incoming() {
            if stopped.load(Ordering::Acquire) {
                return;
            }
            answer(stream.unwrap());
        }
    });
    (address, stop, thread)
}

/// What the worker that serves says first.
pub(super) fn hello() -> Hello {
    let worker = regrow_protocol::WorkerDescription {
        worker: regrow_protocol::WorkerId::from_bits(1),
        data_directory: regrow_protocol::DataDirectoryId::from_bits(1),
        slots: 1,
        shuffle_address: None,
        keeper: regrow_protocol::PartitionKeeper::Worker,
    };
    Hello::new("c".to_owned(), Some(1), Role::TaskManager(worker))
}

/// Says `ours` and hears the other side, byte by byte, so that nothing beyond is taken.
pub(super) fn introduce(stream: &mut TcpStream, expected: Role, ours: &Hello) -> bool {
    let body = encode(ours).unwrap();
    let mut frame = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
    frame.extend_from_slice(&body);
    let mut length = [0; 4];
    if stream.write_all(&frame).is_err() || stream.read_exact(&mut length).is_err() {
        return false;
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > 1 << 10 {
        return false;
    }
    let mut theirs = vec![0; length];
    if stream.read_exact(&mut theirs).is_err() {
        return false;
    }
    regrow_protocol::decode::<Hello>(&theirs).is_ok_and(|theirs| theirs.role == expected)
}

pub(super) fn reads(grace: Duration) -> RemoteReads {
    let hello = Hello::new("c".to_owned(), Some(1), Role::PartitionReader);
    RemoteReads { hello, grace, silence_timeout: Duration::from_secs(10) }
}

/// A reader of `partitions`, all of the directory with id `0xd`.
pub(super) fn reader(
    reads: RemoteReads,
    address: SocketAddr,
    partitions: &[PartitionId],
    range: std::ops::Range<u32>,
) -> RemoteReader {
    reader_with_window(reads, (address, 1 << 20), partitions, range)
}

pub(super) fn reader_with_window(
    reads: RemoteReads,
    (address, window_bytes): (SocketAddr, u64),
    partitions: &[PartitionId],
    range: std::ops::Range<u32>,
) -> RemoteReader {
    RemoteReader::new(
        Arc::new(reads),
        input((address, window_bytes), partitions, range),
        Arc::default(),
    )
}

fn input(
    (address, window_bytes): (SocketAddr, u64),
    partitions: &[PartitionId],
    range: std::ops::Range<u32>,
) -> RemoteInput {
    let data_directory = regrow_protocol::DataDirectoryId::from_bits(0xd);
    let producer =
        |partition: &PartitionId| ProducerPartition { partition: *partition, data_directory };
    RemoteInput {
        address,
        epoch: Epoch::new(1, 0),
        subpartitions: SubpartitionRange { start: range.start, end: range.end },
        partitions: partitions.iter().map(producer).collect(),
        window_bytes,
    }
}

/// All blocks of `count` partitions.
pub(super) fn read_all(
    reader: &mut RemoteReader,
    count: usize,
) -> Result<Vec<Vec<u8>>, FetchError> {
    let (mut blocks, mut block) = (Vec::new(), Vec::new());
    for _ in 0..count {
        reader.open_next()?;
        while reader.next_block(&mut block)? {
            blocks.push(block.clone());
        }
    }
    Ok(blocks)
}

/// A reader that ends when `stop` is set.
pub(super) fn stoppable(
    reads: RemoteReads,
    address: SocketAddr,
    partitions: &[PartitionId],
    stop: &Arc<AtomicBool>,
) -> RemoteReader {
    let input = input((address, 1 << 20), partitions, 0..4);
    RemoteReader::new(Arc::new(reads), input, Arc::clone(stop))
}
