//! Writers that are killed.

use std::{
    env,
    hash::{BuildHasher, RandomState},
    io::{BufRead, BufReader, Write, stderr},
    path::Path,
    process::{Command, Stdio},
};

use super::*;

const ROOT: &str = "REGROW_TEST_CRASH_ROOT";
const SEED: &str = "REGROW_TEST_SEED";
const KILLS: u32 = 12;
const SUBPARTITIONS: u32 = 5;

/// The `n`th block of an output; long enough that some of a task's blocks reach the disk early.
fn block(attempt: ExecutionAttemptId, output: usize, n: u32) -> Vec<u8> {
    let mut block = content(attempt, output);
    block.resize(1 + (n as usize * 7_919) % 30_000, u8::try_from(n).unwrap());
    block
}

/// The body of the process that is killed: seals attempts, from the first unknown one on, and
/// says so after each. Runs as a test of its own only when the other test starts it.
#[test]
fn writer_process() {
    let Some(root) = env::var_os(ROOT) else { return };
    let root = Path::new(&root);
    let mut taken = DataDirectory::take_over(root).unwrap();
    let directory = taken
        .pop()
        .unwrap_or_else(|| DataDirectory::create(root, DataDirectoryId::from_bits(1)).unwrap());
    let directory = Arc::new(directory);
    let finished = directory.inventory(RUN).unwrap().finished;
    let first = finished.iter().map(|record| record.attempt.subtask + 1).max().unwrap_or(0);
    for subtask in first..first + 2_000 {
        let count = subtask as usize % 4;
        let specs = outputs(&vec![SUBPARTITIONS; count]);
        let mut writer =
            AttemptWriter::create(&directory, attempt(subtask), &specs, 40_000).unwrap();
        for n in 0..15 {
            for output in 0..count {
                let bytes = block(attempt(subtask), output, n);
                writer.write_block(output, n % SUBPARTITIONS, &bytes, 1).unwrap();
            }
            // Fails, and so ends this process, when nobody listens any more.
            writeln!(stderr(), "working").unwrap();
        }
        writer.seal(record(attempt(subtask))).unwrap();
        writeln!(stderr(), "sealed {subtask}").unwrap();
    }
}

/// Starts a writer, kills it after `lines` lines, and tells which attempts it said to have sealed.
fn write_and_kill(root: &Path, lines: usize) -> Vec<u32> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["tests::crash::writer_process", "--exact", "--nocapture"])
        .env(ROOT, root)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stderr.take().unwrap());
    let mut output = output.lines();
    let mut said: Vec<String> = output.by_ref().take(lines).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it died counts too.
    said.extend(output.map_while(Result::ok));
    assert!(said.len() >= lines, "the writer failed: {said:?}");
    said.iter().filter_map(|line| line.strip_prefix("sealed ")?.parse().ok()).collect()
}

fn check(root: &Path, sealed: &[u32]) {
    let mut taken = DataDirectory::take_over(root).unwrap();
    let directory = taken.pop().unwrap();
    let inventory = directory.inventory(RUN).unwrap();
    let attempts: Vec<u32> =
        inventory.finished.iter().map(|record| record.attempt.subtask).collect();
    assert!(sealed.iter().all(|subtask| attempts.contains(subtask)), "{sealed:?} {attempts:?}");
    let run = root.join(directory.id().to_string()).join(RUN.to_string());
    if inventory.finished.is_empty() && !run.exists() {
        return; // It was killed before it made the directory of the run.
    }
    for entry in fs::read_dir(run).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.contains(".tmp"), "{name}");
    }
    for record in &inventory.finished {
        for (output, metrics) in record.outputs.iter().enumerate() {
            let found = read(root, directory.id(), partition(record.attempt, output));
            let mut order: Vec<u32> = (0..15).collect();
            order.sort_by_key(|n| n % SUBPARTITIONS);
            let expected: Vec<_> =
                order.into_iter().map(|n| block(record.attempt, output, n)).collect();
            assert!(found == expected, "{}", record.attempt);
            assert_eq!(metrics.records, 15);
        }
    }
}

fn read(root: &Path, directory: DataDirectoryId, partition: PartitionId) -> Vec<Vec<u8>> {
    let range = SubpartitionRange { start: 0, end: SUBPARTITIONS };
    let mut reader = PartitionReader::open(root, directory, partition, range).unwrap();
    let mut blocks = Vec::new();
    let mut block = Vec::new();
    while reader.next_block(&mut block).unwrap() {
        blocks.push(block.clone());
    }
    blocks
}

#[test]
fn promise_p1_whatever_moment_kills_a_writer_what_it_sealed_is_proven_and_complete() {
    let seed = env::var(SEED).ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    writeln!(stderr(), "{SEED}={seed}").unwrap();
    let root = tempfile::tempdir().unwrap();
    let mut sealed = Vec::new();
    for kill in 0..KILLS {
        let bits = crc32c::crc32c_append(kill, &seed.to_le_bytes());
        sealed.extend(write_and_kill(root.path(), 1 + bits as usize % 150));
        check(root.path(), &sealed);
    }
}
