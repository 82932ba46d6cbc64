//! Measures the data plane against the machine it runs on:
//! `cargo run --release -p regrow-shuffle --example shuffle_rate [DIRECTORY] [MEGABYTES]`.
//!
//! Writes, seals and reads partitions of 128 subpartitions, and in the same round the same bytes to
//! and from plain files; of five rounds the best of each counts. Then counts how many attempts
//! without outputs finish per second.

use std::{
    env,
    fs::{self, File},
    io::{self, Read, Write, stdout},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use regrow_protocol::{
    Accumulators, DataDirectoryId, DataSetId, Epoch, ExecutionAttemptId, FinishRecord, JobVertexId,
    OutputSpec, PartitionId, PlanId, RunId, SubpartitionRange, TaskMetrics,
};
use regrow_shuffle::{AttemptWriter, DataDirectory, PartitionReader};

/// Any error ends the program.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const SUBPARTITIONS: u32 = 128;
const BLOCK_BYTES: usize = 32 << 10;
const ROUNDS: u32 = 5;
const FINISHES: u32 = 20_000;

fn main() -> Outcome<()> {
    let mut arguments = env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| ".".to_owned());
    let megabytes: u32 = arguments.next().map_or(Ok(1024), |text| text.parse())?;
    let root = tempfile::tempdir_in(directory)?;
    let shapes = [
        Shape { attempts: 1, memory_bytes: 32 << 20 },
        Shape { attempts: 1, memory_bytes: 128 << 20 },
        Shape { attempts: megabytes.div_ceil(16), memory_bytes: 32 << 20 },
    ];
    let data = Arc::new(DataDirectory::create(root.path(), DataDirectoryId::from_bits(1))?);
    for shape in shapes {
        let blocks = (megabytes / shape.attempts) * ((1 << 20) / u32::try_from(BLOCK_BYTES)?);
        let mut plain = Rate::default();
        let mut shuffle = Rate::default();
        for _ in 0..ROUNDS {
            plain = plain.best(measure_plain(root.path(), blocks, shape)?);
            shuffle = shuffle.best(measure_shuffle(&data, blocks, shape)?);
        }
        report(megabytes, shape, plain, shuffle)?;
    }
    data.release_run(RunId::from_bits(1))?;
    measure_finishes(&data)
}

/// What is written by whom.
#[derive(Clone, Copy)]
struct Shape {
    attempts: u32,
    memory_bytes: u64,
}

/// How long writing and reading took.
#[derive(Clone, Copy)]
struct Rate {
    write: Duration,
    read: Duration,
}

impl Default for Rate {
    fn default() -> Self {
        Self { write: Duration::MAX, read: Duration::MAX }
    }
}

impl Rate {
    fn best(self, other: Self) -> Self {
        Self { write: self.write.min(other.write), read: self.read.min(other.read) }
    }
}

fn report(megabytes: u32, shape: Shape, plain: Rate, shuffle: Rate) -> io::Result<()> {
    let rate = |time: Duration| f64::from(megabytes) / time.as_secs_f64();
    writeln!(
        stdout(),
        "{} attempts of {} MiB in {} MiB of memory: write and seal {:.0} MiB/s ({:.2} of plain {:.0}), read {:.0} MiB/s ({:.2} of \
         plain {:.0}), together {:.2} of plain",
        shape.attempts,
        megabytes / shape.attempts,
        shape.memory_bytes >> 20,
        rate(shuffle.write),
        plain.write.as_secs_f64() / shuffle.write.as_secs_f64(),
        rate(plain.write),
        rate(shuffle.read),
        plain.read.as_secs_f64() / shuffle.read.as_secs_f64(),
        rate(plain.read),
        (plain.write + plain.read).as_secs_f64() / (shuffle.write + shuffle.read).as_secs_f64(),
    )
}

/// The content of block `n`: cheap to make, and different from block to block.
fn fill(block: &mut [u8], n: u32) {
    for (byte, value) in block.iter_mut().zip(n.to_le_bytes()) {
        *byte = value;
    }
}

fn measure_plain(root: &Path, blocks: u32, shape: Shape) -> Outcome<Rate> {
    let mut block = vec![1; BLOCK_BYTES];
    let path = |n: u32| root.join(format!("plain-{n}"));
    let start = Instant::now();
    for file in 0..shape.attempts {
        let mut file = File::create(path(file))?;
        for n in 0..blocks {
            fill(&mut block, n);
            file.write_all(&block)?;
        }
    }
    let write = start.elapsed();
    let start = Instant::now();
    for file in 0..shape.attempts {
        let mut file = File::open(path(file))?;
        for _ in 0..blocks {
            file.read_exact(&mut block)?;
        }
    }
    let read = start.elapsed();
    for file in 0..shape.attempts {
        fs::remove_file(path(file))?;
    }
    Ok(Rate { write, read })
}

fn measure_shuffle(data: &Arc<DataDirectory>, blocks: u32, shape: Shape) -> Outcome<Rate> {
    let attempts: Vec<_> = (0..shape.attempts).map(attempt).collect();
    let data_set = DataSetId(0);
    let mut block = vec![1; BLOCK_BYTES];
    let start = Instant::now();
    for attempt in &attempts {
        let outputs = [OutputSpec { data_set, subpartitions: SUBPARTITIONS }];
        let mut writer = AttemptWriter::create(data, *attempt, &outputs, shape.memory_bytes)?;
        for n in 0..blocks {
            fill(&mut block, n);
            writer.write_block(0, n % SUBPARTITIONS, &block, 1)?;
        }
        writer.seal(record(*attempt))?;
    }
    let write = start.elapsed();
    let start = Instant::now();
    let mut found = 0;
    for subpartition in 0..SUBPARTITIONS {
        let range = SubpartitionRange { start: subpartition, end: subpartition + 1 };
        for attempt in &attempts {
            let partition = PartitionId { attempt: *attempt, data_set };
            let mut reader = PartitionReader::open(data.root(), data.id(), partition, range)?;
            while reader.next_block(&mut block)? {
                found += 1;
            }
        }
    }
    let read = start.elapsed();
    assert_eq!(found, blocks * shape.attempts);
    data.release(&attempts)?;
    Ok(Rate { write, read })
}

fn measure_finishes(data: &Arc<DataDirectory>) -> Outcome<()> {
    let start = Instant::now();
    for n in 0..FINISHES {
        AttemptWriter::create(data, attempt(n), &[], 0)?.seal(record(attempt(n)))?;
    }
    let each = start.elapsed() / FINISHES;
    writeln!(
        stdout(),
        "finishes without outputs: {:.1} us each, {:.0} per second",
        each.as_secs_f64() * 1e6,
        1.0 / each.as_secs_f64()
    )?;
    let start = Instant::now();
    let found = data.inventory(RunId::from_bits(1))?.finished.len();
    writeln!(stdout(), "inventory of {found} of them: {:?}", start.elapsed())?;
    Ok(())
}

fn attempt(subtask: u32) -> ExecutionAttemptId {
    ExecutionAttemptId {
        run: RunId::from_bits(1),
        vertex: JobVertexId(0),
        subtask,
        epoch: Epoch::new(1, 0),
        number: 0,
    }
}

fn record(attempt: ExecutionAttemptId) -> FinishRecord {
    FinishRecord {
        attempt,
        plan: PlanId(1),
        inputs: Vec::new(),
        outputs: Vec::new(),
        metrics: TaskMetrics::default(),
        accumulators: Accumulators::default(),
        splits: Vec::new(),
        staged_files: Vec::new(),
    }
}
