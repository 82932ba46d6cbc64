//! `generate`: input for jobs.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};

use super::{
    error::CliError,
    generated_records::{RECORD_BYTES, write_records},
    generated_text::GeneratedText,
};
use crate::byte_count::ByteCount;

/// Bytes of a file that are buffered.
const BUFFER_BYTES: usize = 1 << 20;

/// What to generate.
#[derive(Debug, Subcommand)]
pub(crate) enum GenerateCommand {
    /// Makes text: lines of a bundled book, the same for the same seed
    #[command(after_help = "Examples:
  regrow generate text --bytes 64mb --output text.txt
  regrow generate text --bytes 1gb --files 8 --output text/")]
    Text(TextFlags),
    /// Makes records of 100 bytes, lines that begin with a random key of 10 bytes, the same for the
    /// same seed
    #[command(after_help = "Examples:
  regrow generate records --size 1gb --output records.bin
  regrow generate records --size 1gb --files 16 --output records/")]
    Records(RecordFlags),
}

/// Which text.
#[derive(Debug, Args)]
pub(crate) struct TextFlags {
    /// File to write, or directory with --files
    #[arg(long, value_name = "PATH")]
    output: PathBuf,
    /// How much text, such as 64mb
    #[arg(long, visible_alias = "size", value_name = "SIZE", default_value = "64mb")]
    bytes: ByteCount,
    /// Make a directory with so many files, which have the size together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    files: Option<u32>,
    /// Another seed gives another text
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,
}

/// Which records.
#[derive(Debug, Args)]
pub(crate) struct RecordFlags {
    /// File to write, or directory with --files
    #[arg(long, value_name = "PATH")]
    output: PathBuf,
    /// How much, such as 1gb: as many whole records as fit
    #[arg(long, visible_alias = "bytes", value_name = "SIZE", default_value = "64mb")]
    size: ByteCount,
    /// Make a directory with so many files, which have the records together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    files: Option<u32>,
    /// Another seed gives other records
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,
}

/// `generate`.
pub(crate) fn generate(command: &GenerateCommand) -> Result<(), CliError> {
    match command {
        GenerateCommand::Text(flags) => text(flags),
        GenerateCommand::Records(flags) => records(flags),
    }
}

fn text(flags: &TextFlags) -> Result<(), CliError> {
    let Some(files) = flags.files else {
        return write(&flags.output, flags.bytes.0, flags.seed);
    };
    fs::create_dir_all(&flags.output).map_err(|error| refused(&flags.output, &error))?;
    let bytes = flags.bytes.0.div_ceil(u64::from(files));
    for file in 0..files {
        let path = flags.output.join(format!("part-{file:05}.txt"));
        write(&path, bytes, flags.seed.wrapping_add(u64::from(file)))?;
    }
    Ok(())
}

fn records(flags: &RecordFlags) -> Result<(), CliError> {
    let records = flags.size.0 / RECORD_BYTES as u64;
    let Some(files) = flags.files else {
        return write_file(&flags.output, |out| write_records(flags.seed, 0, records, out));
    };
    fs::create_dir_all(&flags.output).map_err(|error| refused(&flags.output, &error))?;
    let per_file = records.div_ceil(u64::from(files));
    for file in 0..files {
        let first = records.min(per_file * u64::from(file));
        let end = records.min(first + per_file);
        let path = flags.output.join(format!("part-{file:05}.bin"));
        write_file(&path, |out| write_records(flags.seed, first, end, out))?;
    }
    Ok(())
}

/// Writes the text of `seed` to a file, in place of one that is there.
pub(crate) fn write(path: &Path, bytes: u64, seed: u64) -> Result<(), CliError> {
    write_file(path, |out| GeneratedText::new(seed).write(bytes, out))
}

fn write_file(
    path: &Path,
    content: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> Result<(), CliError> {
    let file = File::create(path).map_err(|error| refused(path, &error))?;
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, file);
    content(&mut file).and_then(|()| file.flush()).map_err(|error| failed(path, &error))
}

/// The path is of no use, whatever is written.
fn refused(path: &Path, error: &io::Error) -> CliError {
    CliError::Usage(format!("cannot make {}: {error}; give another --output", path.display()))
}

fn failed(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed(format!("cannot write {}: {error}", path.display()))
}
