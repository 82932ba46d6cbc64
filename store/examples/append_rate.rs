//! Durable appends per second, bytes on disk and time to open, for each store.
//!
//! `cargo run --release -p regrow-store --example append_rate [APPENDS] [BATCH_BYTES] [RUNS]`

use std::{
    env,
    error::Error,
    fs,
    io::{Write, stdout},
    path::Path,
    time::Instant,
};

use regrow_protocol::{Epoch, RunId};
use regrow_store::{EventStore, FileStore, MemoryStore, SledStore, StoreError};

type Open = fn(&Path) -> Result<Box<dyn EventStore>, StoreError>;

const STORES: [(&str, Open); 3] = [
    ("memory", |_| Ok(Box::new(MemoryStore::new()))),
    ("file", |path| Ok(Box::new(FileStore::open(path)?))),
    ("sled", |path| Ok(Box::new(SledStore::open(path)?))),
];

const RUN: RunId = RunId::from_bits(u128::MAX);
const EPOCH: Epoch = Epoch::new(1, 0);

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<u64> =
        env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let number = |index, otherwise| numbers.get(index).copied().unwrap_or(otherwise);
    let (appends, batch_bytes, runs) = (number(0, 2_000), number(1, 300), number(2, 0));
    for (name, open) in STORES {
        let directory = tempfile::tempdir()?;
        measure(name, directory.path(), open, (appends, batch_bytes))?;
        if runs > 0 {
            let directory = tempfile::tempdir()?;
            measure_history(name, directory.path(), open, runs)?;
        }
    }
    Ok(())
}

fn measure(
    name: &str,
    path: &Path,
    open: Open,
    (appends, batch_bytes): (u64, u64),
) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let mut store = open(path)?;
    let opened = began.elapsed();
    store.open_log(RUN, EPOCH)?;
    let claimed = began.elapsed();
    let batch = vec![7; usize::try_from(batch_bytes)?];
    let began = Instant::now();
    let mut slowest = began.elapsed();
    for _ in 0..appends {
        let began = Instant::now();
        store.append(RUN, EPOCH, &batch)?;
        slowest = slowest.max(began.elapsed());
    }
    let rate = f64::from(u32::try_from(appends)?) / began.elapsed().as_secs_f64();
    drop(store);
    let began = Instant::now();
    let mut store = open(path)?;
    let reopened = began.elapsed();
    let batches = store.read_log(RUN)?.batches.len();
    let read = began.elapsed();
    writeln!(
        stdout(),
        "{name}: open new {opened:.1?}, with a log {claimed:.1?}; {rate:.0} appends of {batch_bytes} \
         bytes a second, slowest {slowest:.1?}; {} bytes on disk; open again {reopened:.1?}, with \
         {batches} batches read {read:.1?}",
        bytes(path)?,
    )?;
    Ok(())
}

// Many small jobs that come and go: what is left must not grow with their number.
fn measure_history(name: &str, path: &Path, open: Open, runs: u64) -> Result<(), Box<dyn Error>> {
    let mut store = open(path)?;
    let began = Instant::now();
    let mut most = 0;
    for run in 0..runs {
        let run = RunId::from_bits(run.into());
        store.open_log(run, EPOCH)?;
        for _ in 0..3 {
            store.append(run, EPOCH, &[7; 300])?;
        }
        store.remove_log(run)?;
        if run.bits().is_multiple_of(100) {
            most = most.max(bytes(path)?);
        }
    }
    let lasted = began.elapsed();
    drop(store);
    let began = Instant::now();
    drop(open(path)?);
    let reopened = began.elapsed();
    writeln!(
        stdout(),
        "{name}: {runs} jobs in {lasted:.1?}; at most {most}, at the end {} bytes on disk; open again \
         {reopened:.1?}",
        bytes(path)?
    )?;
    Ok(())
}

fn bytes(path: &Path) -> Result<u64, Box<dyn Error>> {
    let mut sum = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(sum)
}
