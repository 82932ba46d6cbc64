//! Reads records of a fixed length as a job does.

use std::{fs, io::Write as _, path::PathBuf};

use flate2::{Compression, write::GzEncoder};

use super::*;
use crate::test_job::TestJob;

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn file(name: &str, content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, content).unwrap();
    (directory, path)
}

/// The records as numbers, sorted.
fn read(path: &Path, length: u32) -> Result<Vec<u64>, TaskFailure> {
    let job = TestJob::new(1 << 20, |environment| {
        environment
            .read_records(path, length)
            .map(|record| u64::from_le_bytes(record[..8].try_into().unwrap()))
            .write_csv("/output")
    });
    let mut numbers: Vec<u64> = job.lines()?.iter().map(|line| line.parse().unwrap()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

#[test]
fn each_record_is_read_once_whatever_the_splits() {
    for length in [1000, 1009, 1 << 20] {
        let count = (5 << 20) / length + 1;
        let (_directory, path) = file("a", &numbers(count, length));
        let expected: Vec<u64> = (0..count as u64).collect();
        assert_eq!(read(&path, u32::try_from(length).unwrap()).unwrap(), expected, "{length}");
    }
    let (_directory, path) = file("a.gz", &gzip(&numbers(999, 1001)));
    assert_eq!(read(&path, 1001).unwrap(), (0..999).collect::<Vec<_>>());
}

/// Records that begin with their number.
fn numbers(count: usize, length: usize) -> Vec<u8> {
    let mut content = vec![7; count * length];
    for (n, record) in (0_u64..).zip(content.chunks_exact_mut(length)) {
        record[..8].copy_from_slice(&n.to_le_bytes());
    }
    content
}

#[test]
fn p4_a_file_whose_length_is_no_multiple_is_named_with_its_size() {
    let content = [1; 21];
    let (_directory, path) = file("a", &content);
    let error = read(&path, 10).unwrap_err().to_string();
    assert!(error.contains("a has 21 bytes") && error.contains("1 would be left"), "{error}");
    let (_directory, path) = file("a.gz", &gzip(&content));
    let error = read(&path, 10).unwrap_err().to_string();
    assert!(error.contains("a.gz, byte 20") && error.contains("1 bytes"), "{error}");
}

#[test]
fn records_of_no_length_or_beyond_memory_are_refused() {
    let environment = Environment::new(None, false);
    let _ = environment.read_records("/in", 0);
    assert!(environment.into_job().defect.unwrap().contains("length of 0 bytes"));
    let (_directory, path) = file("a", &vec![0; 2 << 20]);
    let error = read(&path, 2 << 20).unwrap_err().to_string();
    assert!(error.contains("taskmanager.memory.task.size"), "{error}");
}
