//! Writers that are killed.

use std::{
    env,
    hash::{BuildHasher, RandomState},
    io::{BufRead, BufReader, Lines, Write, stderr},
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
};

use regrow_protocol::WorkerId;

use super::*;

const ROOT: &str = "REGROW_TEST_CRASH_ROOT";
/// Set for writers that join the directory of a service: the number of the first attempt.
const FIRST: &str = "REGROW_TEST_CRASH_FIRST";
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
    let (directory, first) = match env::var(FIRST) {
        Ok(first) => join(root, first.parse().unwrap()),
        Err(_) => take_over(root),
    };
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

/// The directory, for its one writer, and the first attempt that it does not hold.
fn take_over(root: &Path) -> (Arc<DataDirectory>, u32) {
    let mut taken = DataDirectory::take_over(root).unwrap();
    let directory = taken
        .pop()
        .unwrap_or_else(|| DataDirectory::create(root, DataDirectoryId::from_bits(1)).unwrap());
    let finished = directory.inventory(RUN).unwrap().finished;
    let first = finished.iter().map(|record| record.attempt.subtask + 1).max().unwrap_or(0);
    (Arc::new(directory), first)
}

/// The directory of the service that lives, for one of its writers.
fn join(root: &Path, first: u32) -> (Arc<DataDirectory>, u32) {
    let worker = WorkerId::from_bits(u128::from(first));
    let joined = DataDirectory::join(root, worker).unwrap();
    (Arc::new(joined.expect("the service lives")), first)
}

/// A writer that runs, and what it says.
struct Writer {
    child: Child,
    output: Lines<BufReader<ChildStderr>>,
    said: Vec<String>,
}

impl Writer {
    fn start(root: &Path, first: Option<u32>) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["tests::crash::writer_process", "--exact", "--nocapture"]).env(ROOT, root);
        command.envs(first.map(|first| (FIRST, first.to_string())));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, output, said: Vec::new() }
    }

    /// Waits until it has said `lines` lines more.
    fn hear(&mut self, lines: usize) {
        let before = self.said.len();
        self.said.extend(self.output.by_ref().take(lines).map(Result::unwrap));
        assert_eq!(self.said.len(), before + lines, "the writer failed: {:?}", self.said);
    }

    /// Kills it, and tells which attempts it said to have sealed.
    fn kill(mut self) -> Vec<u32> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // What it said before it died counts too.
        self.said.extend(self.output.map_while(Result::ok));
        self.said.iter().filter_map(|line| line.strip_prefix("sealed ")?.parse().ok()).collect()
    }
}

/// Starts a writer, kills it after `lines` lines, and tells which attempts it said to have sealed.
fn write_and_kill(root: &Path, lines: usize) -> Vec<u32> {
    let mut writer = Writer::start(root, None);
    writer.hear(lines);
    writer.kill()
}

fn check(root: &Path, sealed: &[u32]) {
    let mut taken = DataDirectory::take_over(root).unwrap();
    check_directory(root, &taken.pop().unwrap(), sealed);
}

/// Checks that all that was sealed is proven, and all that is proven is complete.
fn check_directory(root: &Path, directory: &DataDirectory, sealed: &[u32]) {
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

fn seed() -> u64 {
    let seed = env::var(SEED).ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    writeln!(stderr(), "{SEED}={seed}").unwrap();
    seed
}

#[test]
fn promise_p1_whatever_moment_kills_a_writer_what_it_sealed_is_proven_and_complete() {
    let seed = seed();
    let root = tempfile::tempdir().unwrap();
    let mut sealed = Vec::new();
    for kill in 0..KILLS {
        let bits = crc32c::crc32c_append(kill, &seed.to_le_bytes());
        sealed.extend(write_and_kill(root.path(), 1 + bits as usize % 150));
        check(root.path(), &sealed);
    }
}

#[test]
fn promise_p5_writers_that_are_killed_leave_a_service_what_they_sealed_and_nothing_else() {
    let seed = seed();
    let root = tempfile::tempdir().unwrap();
    let mut kept = DataDirectory::keep(root.path(), DataDirectoryId::from_bits(1)).unwrap();
    let service = kept.pop().unwrap();
    let mut living = Writer::start(root.path(), Some(1_000_000));
    living.hear(1);
    let mut sealed = Vec::new();
    for kill in 1..=KILLS / 2 {
        let bits = crc32c::crc32c_append(kill, &seed.to_le_bytes());
        let mut dying = Writer::start(root.path(), Some(kill * 10_000));
        dying.hear(1 + bits as usize % 100);
        living.hear(1 + bits as usize % 50);
        sealed.extend(dying.kill());
        let dead = WorkerId::from_bits(u128::from(kill * 10_000));
        assert_eq!(service.remove_dead_writers().unwrap(), [dead]);
        check_directory(root.path(), &service, &sealed);
    }
    sealed.extend(living.kill());
    assert_eq!(service.remove_dead_writers().unwrap().len(), 1);
    check_directory(root.path(), &service, &sealed);
}
