//! Sinks in a job, from lines to files.

use crate::{environment::Environment, test_job::TestJob};

fn input(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

/// Names and contents of the files of a job.
fn files<T>(build: impl FnOnce(&Environment) -> T) -> Vec<(String, Vec<u8>)> {
    let files = TestJob::new(1 << 20, build).files().unwrap();
    files.into_iter().map(|(_, name, content)| (name, content)).collect()
}

#[test]
fn records_are_written_as_the_bytes_that_they_are() {
    let file = input("2 a\n1 \n0 c\n");
    let found = files(|env| {
        env.read_text(file.path()).map(|line| line.as_bytes().to_vec()).write_records("/out")
    });
    assert_eq!(found, [("part-00000.bin".to_owned(), b"2 a1 0 c".to_vec())]);
    let texts = files(|env| env.read_text(file.path()).write_records("/out"));
    assert_eq!(texts, found);
}

#[test]
fn a_task_without_records_writes_no_file() {
    let file = input("a\nb\n");
    let found =
        files(|env| env.read_text(file.path()).filter(|line| line == "z").write_records("/out"));
    assert_eq!(found, []);
}
