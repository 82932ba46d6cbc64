//! Measures reads over TCP against reads of the same files, and against what the loopback device
//! carries at all: `cargo bench -p regrow-shuffle --bench remote_reads [-- MEGABYTES]`.
//!
//! All three take turns; of five rounds the best of each counts. Blocks are verified in both kinds
//! of reads. The files are in the page cache.

use std::{
    error::Error,
    io::{Read as _, Write as _, stdout},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use regrow_protocol::{
    Accumulators, DataDirectoryId, DataSetId, Epoch, ExecutionAttemptId, FinishRecord, Hello,
    JobVertexId, OutputSpec, PartitionId, PartitionKeeper, PlanId, ProducerPartition, Role, RunId,
    SubpartitionRange, TaskMetrics, WorkerDescription, WorkerId, encode,
};
use regrow_shuffle::{
    AttemptWriter, DataDirectory, PartitionReader, PartitionServer, RemoteInput, RemoteReader,
    RemoteReads, ServerLimits,
};

/// Any error ends the program.
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const SUBPARTITIONS: u32 = 64;
const ATTEMPTS: u32 = 16;
const BLOCK_BYTES: usize = 32 << 10;
const WINDOW_BYTES: u64 = 1 << 20;
const ROUNDS: u32 = 5;
const WHOLE: SubpartitionRange = SubpartitionRange { start: 0, end: SUBPARTITIONS };

fn main() -> Outcome<()> {
    let megabytes: u32 = std::env::args().find_map(|text| text.parse().ok()).unwrap_or(512);
    let root = tempfile::tempdir()?;
    let data = Arc::new(DataDirectory::create(root.path(), DataDirectoryId::from_bits(1))?);
    let blocks = u64::from(megabytes) * (1 << 20) / BLOCK_BYTES as u64 / u64::from(ATTEMPTS);
    let partitions: Vec<ProducerPartition> =
        (0..ATTEMPTS).map(|subtask| write(&data, subtask, blocks)).collect::<Outcome<_>>()?;
    let server = Arc::new(PartitionServer::new([&*data], ServerLimits::default()));
    let address = serve(&server)?;
    let bytes = blocks * u64::from(ATTEMPTS) * BLOCK_BYTES as u64;
    let (mut local, mut remote, mut loopback) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        local = local.min(read_local(&data, &partitions, bytes)?);
        remote = remote.min(read_remote(address, &partitions, bytes)?);
        loopback = loopback.min(pass_bytes(bytes)?);
    }
    server.close();
    let rate = |time: Duration| to_f64(bytes) / time.as_secs_f64() / 1e9;
    writeln!(
        stdout(),
        "{megabytes} MiB of {ATTEMPTS} partitions, blocks of 32 KiB: {:.2} GB/s from files, {:.2} \
         GB/s over TCP; the loopback device carries {:.2} GB/s",
        rate(local),
        rate(remote),
        rate(loopback),
    )?;
    Ok(())
}

fn to_f64(bytes: u64) -> f64 {
    u32::try_from(bytes >> 10).map_or(f64::INFINITY, f64::from) * 1024.0
}

fn write(data: &Arc<DataDirectory>, subtask: u32, blocks: u64) -> Outcome<ProducerPartition> {
    let run = RunId::from_bits(1);
    let (vertex, epoch) = (JobVertexId(0), Epoch::new(1, 0));
    let attempt = ExecutionAttemptId { run, vertex, subtask, epoch, number: 0 };
    let output = OutputSpec { data_set: DataSetId(0), subpartitions: SUBPARTITIONS };
    let mut writer = AttemptWriter::create(data, attempt, &[output], 32 << 20)?;
    let block = vec![7; BLOCK_BYTES];
    for index in 0..blocks {
        writer.write_block(0, u32::try_from(index)? % SUBPARTITIONS, &block, 1)?;
    }
    writer.seal(FinishRecord {
        attempt,
        plan: PlanId(0),
        inputs: Vec::new(),
        outputs: Vec::new(),
        metrics: TaskMetrics::default(),
        accumulators: Accumulators::default(),
        splits: Vec::new(),
        staged_files: Vec::new(),
    })?;
    let partition = PartitionId { attempt, data_set: DataSetId(0) };
    Ok(ProducerPartition { partition, data_directory: data.id() })
}

fn read_local(
    data: &DataDirectory,
    partitions: &[ProducerPartition],
    bytes: u64,
) -> Outcome<Duration> {
    let (began, mut block, mut read) = (Instant::now(), Vec::new(), 0);
    for producer in partitions {
        let mut reader = PartitionReader::open(data.root(), data.id(), producer.partition, WHOLE)?;
        while reader.next_block(&mut block)? {
            read += block.len() as u64;
        }
    }
    assert_eq!(read, bytes);
    Ok(began.elapsed())
}

fn read_remote(
    address: SocketAddr,
    partitions: &[ProducerPartition],
    bytes: u64,
) -> Outcome<Duration> {
    let reads = RemoteReads {
        hello: Hello::new("bench".to_owned(), None, Role::PartitionReader),
        grace: Duration::ZERO,
        silence_timeout: Duration::from_secs(10),
    };
    let input = RemoteInput {
        address,
        epoch: Epoch::new(1, 0),
        subpartitions: WHOLE,
        partitions: partitions.to_vec(),
        window_bytes: WINDOW_BYTES,
    };
    let (began, mut block, mut read) = (Instant::now(), Vec::new(), 0);
    let mut reader = RemoteReader::new(Arc::new(reads), input, Arc::default());
    for _ in partitions {
        reader.open_next()?;
        while reader.next_block(&mut block)? {
            read += block.len() as u64;
        }
    }
    assert_eq!(read, bytes);
    Ok(began.elapsed())
}

/// Sends as many bytes over the loopback device, from memory and to nowhere.
fn pass_bytes(bytes: u64) -> Outcome<Duration> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let sender = thread::spawn(move || -> Outcome<()> {
        let (mut stream, _) = listener.accept()?;
        let piece = vec![7; 64 << 10];
        for _ in 0..bytes / piece.len() as u64 {
            stream.write_all(&piece)?;
        }
        Ok(())
    });
    let (mut stream, mut piece) = (TcpStream::connect(address)?, vec![0; 64 << 10]);
    let began = Instant::now();
    while stream.read(&mut piece)? > 0 {}
    sender.join().map_err(|_| "the sender panicked")??;
    Ok(began.elapsed())
}

/// Introduces each caller and has it served.
fn serve(server: &Arc<PartitionServer>) -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let worker = WorkerDescription {
        worker: WorkerId::from_bits(1),
        data_directory: DataDirectoryId::from_bits(1),
        slots: 0,
        shuffle_address: Some(address),
        keeper: PartitionKeeper::Worker,
    };
    let hello = encode(&Hello::new("bench".to_owned(), None, Role::TaskManager(worker)))?;
    let server = Arc::clone(server);
    thread::spawn(move || -> Outcome<()> {
        for stream in listener.incoming() {
            let mut stream = stream?;
            stream.write_all(&u32::try_from(hello.len())?.to_be_bytes())?;
            stream.write_all(&hello)?;
            let mut length = [0; 4];
            stream.read_exact(&mut length)?;
            stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize])?;
            server.serve(stream, Vec::new(), ())?;
        }
        Ok(())
    });
    Ok(address)
}
