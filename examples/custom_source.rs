//! A source of one's own: reads the files in a tar archive, without unpacking it, to count words.
//! `cargo run --release --example custom_source -- run tar texts.tar counts`
use std::fs::File;
use std::io::{BufReader, Error, Lines, SeekFrom, Take, prelude::*};
use std::path::PathBuf;

use regrow::prelude::*;

#[derive(clap::Args, serde::Serialize, serde::Deserialize)]
struct Arguments {
    archive: PathBuf,
    output: PathBuf,
}
struct Tar(PathBuf);
impl Source for Tar {
    type Split = (u64, u64); // Where a file begins in the archive, and its length.
    type Reader = FileInTar;
    fn discover(&self) -> Result<Vec<SourceSplit<Self::Split>>, String> {
        let cannot = |error: Error| format!("cannot list {}: {error}", self.0.display());
        let mut archive = File::open(&self.0).map_err(cannot)?;
        let (mut splits, mut header, mut start) = (Vec::new(), [0; 512], 512);
        while archive.read_exact(&mut header).map(|()| header[0] != 0).map_err(cannot)? {
            let octal = String::from_utf8_lossy(&header[124..135]);
            let bytes = u64::from_str_radix(&octal, 8).map_err(|_| "this is no tar archive")?;
            if header[156] == b'0' {
                splits.push(SourceSplit { split: (start, bytes), size_bytes: bytes });
            }
            start += bytes.next_multiple_of(512) + 512;
            archive.seek(SeekFrom::Start(start - 512)).map_err(cannot)?;
        }
        Ok(splits)
    }
    fn open(&self, (start, bytes): (u64, u64)) -> Result<FileInTar, SourceError> {
        let mut archive = File::open(&self.0)?;
        archive.seek(SeekFrom::Start(start))?;
        Ok(FileInTar(BufReader::new(archive.take(bytes)).lines()))
    }
}
struct FileInTar(Lines<BufReader<Take<File>>>);
impl SplitReader for FileInTar {
    type Item = String;
    fn read(&mut self, out: &mut Emitter<String>) -> Result<SplitProgress, SourceError> {
        while !out.is_full() {
            let Some(line) = self.0.next() else { return Ok(SplitProgress::End) };
            out.emit(line?);
        }
        Ok(SplitProgress::More)
    }
}
fn main() -> std::process::ExitCode {
    regrow::program()
        .job("tar", |env, arguments: Arguments| {
            env.read_from(Tar(env.absolute(&arguments.archive)))
                .flat_map_text(|line, out| out.emit_lowercase_words(line))
                .count_by_key()
                .write_csv(&arguments.output)
        })
        .run()
}
