//! A directory that a shuffle service keeps and several processes write.

use std::collections::BTreeSet;

use regrow_protocol::WorkerId;

use super::*;
use crate::DirectoryError;

/// A service, and a root for it and its writers. A writer of this process stands for one of
/// another: they share nothing but the directory.
struct Host {
    root: TempDir,
    service: DataDirectory,
}

impl Host {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let service = keep(&root).unwrap();
        Self { root, service }
    }

    fn restart(self) -> Self {
        let Self { root, service } = self;
        drop(service);
        let service = keep(&root).unwrap();
        Self { root, service }
    }

    fn writer(&self, id: u128) -> Arc<DataDirectory> {
        let joined = DataDirectory::join(self.root.path(), WorkerId::from_bits(id)).unwrap();
        Arc::new(joined.expect("the service lives"))
    }

    fn finished(&self) -> BTreeSet<u32> {
        let inventory = self.service.inventory(RUN).unwrap();
        assert_eq!(inventory.damaged, []);
        inventory.finished.iter().map(|record| record.attempt.subtask).collect()
    }

    fn read(&self, partition: PartitionId) -> Result<Vec<u8>, FetchError> {
        let range = SubpartitionRange { start: 0, end: 2 };
        let mut block = Vec::new();
        PartitionReader::open(self.root.path(), self.service.id(), partition, range)?
            .next_block(&mut block)?;
        Ok(block)
    }

    fn path(&self) -> PathBuf {
        self.root.path().join(self.service.id().to_string())
    }

    /// What lies in the places of writers.
    fn unsealed(&self) -> Vec<PathBuf> {
        let writers = entries(&self.path().join("writers"));
        let runs = writers.iter().flat_map(|writer| entries(writer));
        runs.flat_map(|run| entries(&run)).collect()
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn keep(root: &TempDir) -> Result<DataDirectory, DirectoryError> {
    let mut kept = DataDirectory::keep(root.path(), DataDirectoryId::from_bits(0x5e))?;
    assert_eq!(kept.len(), 1);
    Ok(kept.remove(0))
}

fn begin(
    writer: &Arc<DataDirectory>,
    attempt: ExecutionAttemptId,
    outputs: usize,
) -> AttemptWriter {
    let specs = super::outputs(&vec![2; outputs]);
    // So little memory that blocks reach the disk at once.
    let mut begun = AttemptWriter::create(writer, attempt, &specs, 1).unwrap();
    for output in 0..outputs {
        for _ in 0..2 {
            begun.write_block(output, 1, &content(attempt, output), 1).unwrap();
        }
    }
    begun
}

fn seal(writer: &Arc<DataDirectory>, subtask: u32, outputs: usize) -> FinishRecord {
    begin(writer, attempt(subtask), outputs).seal(record(attempt(subtask))).unwrap()
}

#[test]
fn what_several_writers_seal_is_found_and_outlives_them_and_the_service() {
    let host = Host::new();
    assert!(host.finished().is_empty());
    let (one, other) = (host.writer(1), host.writer(2));
    for subtask in 0..6 {
        seal(if subtask < 3 { &one } else { &other }, subtask, subtask as usize % 3);
    }
    assert_eq!(host.finished(), (0..6).collect());
    seal(&one, 6, 0);
    seal(&one, 7, 1);
    assert_eq!(host.finished(), (0..8).collect(), "after it had looked once");
    drop((one, other));
    let host = host.restart();
    assert_eq!(host.finished(), (0..8).collect());
    assert_eq!(host.read(partition(attempt(4), 0)).unwrap(), content(attempt(4), 0));
    assert_eq!(host.service.id(), DataDirectoryId::from_bits(0x5e));
}

#[test]
fn the_service_releases_what_writers_sealed() {
    let mut host = Host::new();
    let writer = host.writer(1);
    for subtask in 0..6 {
        seal(&writer, subtask, subtask as usize % 3);
    }
    // Nothing of it was ever reported.
    host.service.release(&[attempt(0), attempt(1), attempt(2), attempt(77)]).unwrap();
    for _ in 0..2 {
        assert_eq!(host.finished(), BTreeSet::from([3, 4, 5]));
        host = host.restart();
    }
    host.service.release(&[attempt(3), attempt(4)]).unwrap();
    assert_eq!(host.finished(), BTreeSet::from([5]));
}

#[test]
fn only_the_unsealed_files_of_dead_writers_are_removed() {
    let host = Host::new();
    let (dead, living) = (host.writer(1), host.writer(2));
    let (cut, whole) = (begin(&dead, attempt(0), 2), begin(&living, attempt(1), 2));
    let before = host.unsealed().len();
    assert_eq!(host.service.remove_dead_writers().unwrap(), []);
    assert_eq!((before, host.unsealed().len()), (4, 4));
    // As a kill leaves it: nothing is tidied up, and the lock is free.
    std::mem::forget(cut);
    let place = host.path().join("writers").join(WorkerId::from_bits(1).to_string());
    fs::remove_file(place.join("lock")).unwrap();
    let host = host.restart();
    assert_eq!(host.unsealed().len(), 2, "a starting service removes them, too");
    assert!(!place.exists());
    whole.seal(record(attempt(1))).unwrap();
    assert_eq!(host.finished(), BTreeSet::from([1]));
    drop((dead, living));
    let mut gone = host.service.remove_dead_writers().unwrap();
    gone.sort_unstable();
    assert_eq!(gone, [WorkerId::from_bits(2)]);
    assert_eq!(host.finished(), BTreeSet::from([1]));
}

#[test]
fn two_services_do_not_keep_one_directory() {
    let host = Host::new();
    host.service.note_life(Some("127.0.0.1:7".to_owned())).unwrap();
    let error = keep(&host.root).unwrap_err().to_string();
    let pid = std::process::id().to_string();
    assert!(error.contains(&pid) && error.contains("127.0.0.1:7"), "{error}");
}

#[test]
fn a_worker_of_its_own_leaves_the_directory_of_a_service_alone() {
    let host = Host::new();
    seal(&host.writer(1), 0, 1);
    let Host { root, service } = host;
    drop(service);
    assert!(DataDirectory::take_over(root.path()).unwrap().is_empty());
    let own = DataDirectory::create(root.path(), DataDirectoryId::from_bits(1)).unwrap();
    assert!(own.remove_if_empty().unwrap());
    assert_eq!(Host { service: keep(&root).unwrap(), root }.finished(), BTreeSet::from([0]));
}

#[test]
fn a_service_takes_over_what_a_dead_worker_left() {
    let fixture = Fixture::new();
    fixture.seal(attempt(0), 1);
    let Fixture { root, directory } = fixture;
    drop(directory);
    let kept = DataDirectory::keep(root.path(), DataDirectoryId::from_bits(0x5e)).unwrap();
    let ids: Vec<u128> = kept.iter().map(|directory| directory.id().bits()).collect();
    assert_eq!(ids, [0x5e, 0xd], "its own comes first");
    assert_eq!(kept[1].inventory(RUN).unwrap().finished.len(), 1);
}

#[test]
fn nobody_joins_where_no_service_lives() {
    let host = Host::new();
    let join = |root: &Path| DataDirectory::join(root, WorkerId::from_bits(1)).unwrap().is_some();
    assert!(join(host.root.path()));
    let Host { root, service } = host;
    drop(service);
    assert!(!join(root.path()), "its process is gone");
    assert!(!join(&root.path().join("nowhere")));
    let _back = keep(&root).unwrap();
    assert!(join(root.path()));
}

#[test]
fn fault_35_a_seal_that_comes_after_the_release_of_its_run_is_found() {
    let host = Host::new();
    let writer = host.writer(1);
    seal(&writer, 0, 1);
    seal(&writer, 1, 0);
    let late = begin(&writer, attempt(2), 1);
    host.service.release_run(RUN).unwrap();
    assert_eq!(host.service.runs().unwrap(), []);
    late.seal(record(attempt(2))).unwrap();
    seal(&writer, 3, 0);
    assert_eq!(host.service.runs().unwrap(), [RUN], "so that somebody is asked about it");
    assert_eq!(host.finished(), BTreeSet::from([2, 3]));
}

#[test]
fn promise_p5_a_writer_that_hears_of_the_end_of_a_run_seals_nothing_more() {
    let host = Host::new();
    let writer = host.writer(1);
    let late = begin(&writer, attempt(0), 1);
    writer.release_run(RUN).unwrap();
    assert!(host.unsealed().is_empty());
    let refused = late.seal(record(attempt(0)));
    assert!(matches!(refused, Err(WriteError::Released { run: RUN })), "{refused:?}");
    assert_eq!(host.service.runs().unwrap(), []);
    // It was given up, and comes back.
    seal(&writer, 1, 1);
    assert_eq!(host.finished(), BTreeSet::from([1]));
}

#[test]
fn a_writer_answers_for_nothing() {
    let host = Host::new();
    let writer = host.writer(1);
    seal(&writer, 0, 1);
    assert!(host.service.is_kept_here() && !writer.is_kept_here());
    assert_eq!((writer.runs().unwrap(), writer.inventory(RUN).unwrap()), Default::default());
    writer.release(&[attempt(0)]).unwrap();
    assert_eq!(host.finished(), BTreeSet::from([0]));
}

#[test]
fn rule_1_2_the_highest_term_outlives_the_service() {
    let host = Host::new();
    assert_eq!(host.service.term().unwrap(), 0);
    host.service.keep_term(7).unwrap();
    let host = host.restart();
    assert_eq!(host.service.term().unwrap(), 7);
    fs::write(host.path().join("term"), "seven").unwrap();
    let error = host.service.term().unwrap_err().to_string();
    assert!(error.contains("term does not hold the highest term"), "{error}");
}
