//! Sinks in a job, from lines to files.

use super::CsvOptions;
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

#[test]
fn lines_are_written_as_text_and_as_json() {
    let file = input("b \"x\"\na\n");
    let text = files(|env| env.read_text(file.path()).write_text("/out"));
    assert_eq!(text, [("part-00000.txt".to_owned(), b"b \"x\"\na\n".to_vec())]);
    let json = files(|env| {
        env.read_text(file.path())
            .map(|line| (line.len(), line.to_owned()))
            .write_json_lines("/out")
    });
    let expected = b"[5,\"b \\\"x\\\"\"]\n[1,\"a\"]\n".to_vec();
    assert_eq!(json, [("part-00000.jsonl".to_owned(), expected)]);
}

#[test]
fn each_file_of_csv_begins_with_the_header() {
    let numbers: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let file = input(&numbers.join("\n"));
    let options = CsvOptions::default().header(["number", "count"]).delimiter('\t');
    let found =
        files(|env| env.read_text(file.path()).count_by_key().write_csv_with("/out", options));
    assert_eq!(found.len(), 3);
    let begin = |content: &[u8]| content.starts_with(b"number\tcount\n");
    assert!(found.iter().all(|(_, content)| begin(content)), "{found:?}");
}

#[test]
fn wrong_options_of_csv_are_a_defect_of_the_job() {
    let environment = Environment::new(None, false);
    let options = CsvOptions::default().delimiter('"');
    let _ = environment.read_text("/in").write_csv_with("/out", options);
    assert!(environment.into_job().defect.unwrap().contains("delimiter"));
}
