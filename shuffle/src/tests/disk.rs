//! Disks that refuse.

use std::{
    io::{Write, stderr},
    path::Path,
    process::Command,
};

use super::*;
use crate::DirectoryError;

/// A small file system of its own; unmounted when dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// None where the user may not mount.
    fn mount() -> Option<Self> {
        let point = tempfile::tempdir().unwrap();
        let mounted = run("mount", &["-t", "tmpfs", "-o", "size=1m", "tmpfs"], point.path());
        if !mounted {
            writeln!(stderr(), "skipped: mounting a small disk needs root").unwrap();
        }
        mounted.then_some(Self(point))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run("umount", &["-l"], self.0.path());
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) -> bool {
    let output = Command::new(program).args(arguments).arg(path).output();
    output.is_ok_and(|output| output.status.success())
}

fn write_until_full(directory: &Arc<DataDirectory>, subtask: u32) -> WriteError {
    let mut writer =
        AttemptWriter::create(directory, attempt(subtask), &outputs(&[2]), 100_000).unwrap();
    let block = vec![1; 50_000];
    for n in 0..100 {
        if let Err(error) = writer.write_block(0, n % 2, &block, 1) {
            let again = writer.seal(record(attempt(subtask)));
            assert!(matches!(again, Err(WriteError::Failed)), "{again:?}");
            return error;
        }
    }
    panic!("5 MB fit into 1 MB");
}

#[test]
fn fault_37_a_full_disk_is_told_costs_the_attempt_and_frees_its_space() {
    let Some(disk) = SmallDisk::mount() else { return };
    let id = DataDirectoryId::from_bits(1);
    let directory = Arc::new(DataDirectory::create(disk.0.path(), id).unwrap());
    for round in 0..3 {
        let error = write_until_full(&directory, round);
        let WriteError::Disk(error) = error else { panic!("{error}") };
        assert!(error.is_full() && error.to_string().contains("no space left"), "{error}");
        // What the failed attempt took is free again.
        let mut writer =
            AttemptWriter::create(&directory, attempt(10 + round), &outputs(&[1]), 0).unwrap();
        writer.write_block(0, 0, &vec![2; 200_000], 1).unwrap();
        writer.seal(record(attempt(10 + round))).unwrap();
        directory.release(&[attempt(10 + round)]).unwrap();
    }
}

#[test]
fn fault_37_a_finish_that_does_not_fit_is_no_finish_and_spoils_no_other() {
    let Some(disk) = SmallDisk::mount() else { return };
    let id = DataDirectoryId::from_bits(1);
    let directory = Arc::new(DataDirectory::create(disk.0.path(), id).unwrap());
    let seal = |subtask| {
        let writer = AttemptWriter::create(&directory, attempt(subtask), &[], 0).unwrap();
        writer.seal(record(attempt(subtask)))
    };
    seal(0).unwrap();
    fs::write(disk.0.path().join("ballast"), vec![0; 1 << 20]).unwrap_err();
    let failed = (1..10_000).find(|subtask| seal(*subtask).is_err()).unwrap();
    fs::remove_file(disk.0.path().join("ballast")).unwrap();
    seal(failed + 1).unwrap();
    let before = directory.inventory(RUN).unwrap();
    assert_eq!(before.damaged, []);
    drop(directory);
    let taken = DataDirectory::take_over(disk.0.path()).unwrap();
    let after = taken[0].inventory(RUN).unwrap();
    assert_eq!(after, before);
    let attempts: Vec<_> = after.finished.iter().map(|record| record.attempt.subtask).collect();
    let expected: Vec<_> = (0..failed).chain([failed + 1]).collect();
    assert_eq!(attempts, expected);
}

#[test]
fn fault_37_a_read_only_disk_is_told_and_still_read() {
    let Some(disk) = SmallDisk::mount() else { return };
    let root = disk.0.path();
    let id = DataDirectoryId::from_bits(1);
    let directory = Arc::new(DataDirectory::create(root, id).unwrap());
    let mut writer = AttemptWriter::create(&directory, attempt(0), &outputs(&[1]), 0).unwrap();
    writer.write_block(0, 0, b"kept", 1).unwrap();
    writer.seal(record(attempt(0))).unwrap();
    drop(directory);
    assert!(run("mount", &["-o", "remount,ro"], root));
    for error in [
        DataDirectory::take_over(root).map(drop).unwrap_err(),
        DataDirectory::create(root, DataDirectoryId::from_bits(2)).map(drop).unwrap_err(),
    ] {
        assert!(error.to_string().contains(".lock: not permitted"), "{error}");
    }
    let range = SubpartitionRange { start: 0, end: 1 };
    let mut reader = PartitionReader::open(root, id, partition(attempt(0), 0), range).unwrap();
    let mut block = Vec::new();
    assert!(reader.next_block(&mut block).unwrap());
    assert_eq!(block, b"kept");
}

#[test]
fn a_root_that_is_a_file_is_named() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("shuffle");
    fs::write(&path, "x").unwrap();
    let id = DataDirectoryId::from_bits(1);
    for error in [
        DataDirectory::create(&path, id).map(drop).unwrap_err(),
        DataDirectory::take_over(&path).map(drop).unwrap_err(),
    ] {
        let DirectoryError::Disk(error) = error else { panic!("{error}") };
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn a_root_that_is_not_there_has_nothing_to_take_over() {
    let root = tempfile::tempdir().unwrap();
    assert!(DataDirectory::take_over(&root.path().join("no")).unwrap().is_empty());
}
