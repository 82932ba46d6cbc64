//! Reads texts as a job does.

use std::{fs, io::Write as _, path::Path};

use flate2::{Compression, write::GzEncoder};

use super::*;
use crate::test_job::TestJob;
use crate::{
    chain::DiscoverSplits as _,
    sources::{file_range::ranges, input_path::InputPath},
};

#[test]
fn lines_end_at_line_feeds_with_or_without_carriage_return() {
    let lines: Vec<&str> = Lines("a\r\n\nb\rc\nlast").collect();
    assert_eq!(lines, ["a", "", "b\rc", "last"]);
}

fn read(input: &Path) -> Result<Vec<String>, TaskFailure> {
    let job = TestJob::new(1 << 20, |environment| {
        environment.read_text(input).map(str::to_owned).write_csv("/output")
    });
    job.lines().map(|mut lines| {
        lines.sort();
        lines
    })
}

#[test]
fn plain_and_compressed_files_are_read_alike() {
    let directory = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..401_000).map(|n| format!("line {n:06}")).collect();
    fs::write(directory.path().join("a.txt"), lines[..400_000].join("\n")).unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(lines[400_000..].join("\n").as_bytes()).unwrap();
    fs::write(directory.path().join("b.txt.gz"), encoder.finish().unwrap()).unwrap();
    assert_eq!(read(directory.path()).unwrap(), lines);
    assert_eq!(read(&directory.path().join("*.gz")).unwrap(), lines[400_000..]);
}

#[test]
fn a_byte_order_mark_belongs_to_no_word() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.txt"), "\u{feff}a b").unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all("\u{feff}c\n\u{feff}d".as_bytes()).unwrap();
    fs::write(directory.path().join("b.txt.gz"), encoder.finish().unwrap()).unwrap();
    assert_eq!(read(directory.path()).unwrap(), ["a b", "c", "\u{feff}d"]);
}

#[test]
fn a_sample_is_read_as_the_whole_is() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a");
    let lines: Vec<String> = (0..1_200_000).map(|n| format!("line{n:07}\n")).collect();
    fs::write(&file, lines.concat()).unwrap();
    let source = FileSource::new(InputPath::new(Path::new("/"), &file), Text);
    let splits = source.sample_splits().unwrap();
    let bytes: u64 = splits.iter().map(|split| split.size_bytes).sum();
    assert!(splits.len() == 4 && bytes < 12 * 1_200_000 / 50, "{bytes}");
    let mut read = 0;
    for split in splits {
        for range in ranges(&split).unwrap() {
            let mut reader = LineReader::open(&range, 1 << 20).unwrap();
            while let Some(text) = reader.next_lines().unwrap() {
                read += text.lines().inspect(|line| assert!(line.len() == 11, "{line}")).count();
            }
        }
    }
    assert!(read as u64 >= bytes / 12 - 4, "{read}");
}
