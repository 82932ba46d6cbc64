//! `verify`: looks whether a sort did what it should.

mod record_files;

use std::{fmt::Write as _, path::PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use xxhash_rust::xxh3::xxh3_64;

use self::record_files::{Place, RecordFiles};
use super::{console::Console, error::CliError, generated_records::KEY_BYTES};

/// What to verify.
#[derive(Debug, Subcommand)]
pub(crate) enum VerifyCommand {
    /// Checks that records are in order, within files and from one file to the next, and prints how
    /// many there are and their checksum
    #[command(after_help = "Example:
  regrow verify sorted sorted/
fails with the file and the offset of the first record that is out of order.")]
    Sorted(VerifyFlags),
    /// Prints how many records there are and their checksum, which does not depend on their order
    #[command(after_help = "Example:
  regrow verify checksum records/
prints for the input of a sort what `verify sorted` does for its output.")]
    Checksum(VerifyFlags),
}

/// What to read.
#[derive(Debug, Args)]
pub(crate) struct VerifyFlags {
    /// File of records, or directory of files, which are read in the order of their names
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Default)]
struct Summary {
    records: u64,
    /// Sum of the hashes of all records.
    checksum: u64,
}

/// `verify`.
pub(crate) fn verify(command: &VerifyCommand, console: &Console) -> Result<(), CliError> {
    let (flags, in_order) = match command {
        VerifyCommand::Sorted(flags) => (flags, true),
        VerifyCommand::Checksum(flags) => (flags, false),
    };
    let mut files = RecordFiles::open(&flags.path)?;
    let mut summary = Summary::default();
    let mut last: Option<([u8; KEY_BYTES], Place)> = None;
    while let Some((record, place)) = files.next()? {
        summary.records += 1;
        summary.checksum = summary.checksum.wrapping_add(xxh3_64(record));
        let Some(key) = record.first_chunk().copied().filter(|_| in_order) else { continue };
        if let Some((before, of_before)) = last
            && key < before
        {
            return Err(out_of_order(&files, (&key, place), (&before, of_before)));
        }
        last = Some((key, place));
    }
    print(&summary, files.count(), flags, in_order, console);
    Ok(())
}

fn print(summary: &Summary, files: usize, flags: &VerifyFlags, in_order: bool, console: &Console) {
    let Summary { records, checksum } = summary;
    let checksum = format!("{checksum:016x}");
    if flags.json {
        let object = json!({ "files": files, "records": records, "checksum": checksum });
        return console.result(&object.to_string());
    }
    let order = if in_order { " in order" } else { "" };
    console.result(&format!("{records} records{order}, {files} files, checksum {checksum}"));
}

type Key = [u8; KEY_BYTES];

fn out_of_order(files: &RecordFiles, this: (&Key, Place), before: (&Key, Place)) -> CliError {
    let ((key, place), (key_before, place_before)) = (this, before);
    CliError::Failed(format!(
        "{} is out of order at byte {}: the key there is {}, and the record before it, at byte {} of \
         {}, has the key {}",
        files.path(place).display(),
        place.offset,
        printed(key),
        place_before.offset,
        files.path(place_before).display(),
        printed(key_before),
    ))
}

/// A key as people can read it.
fn printed(key: &[u8]) -> String {
    if key.iter().all(u8::is_ascii_graphic) {
        return String::from_utf8_lossy(key).into_owned();
    }
    key.iter().fold("0x".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn record(key: &str, rest: &str) -> String {
        format!("{key:10}{rest:89}\n")
    }

    fn verified(path: &Path, in_order: bool) -> Result<(), CliError> {
        let flags = VerifyFlags { path: path.to_owned(), json: true };
        let command =
            if in_order { VerifyCommand::Sorted(flags) } else { VerifyCommand::Checksum(flags) };
        verify(&command, &Console::standard())
    }

    #[test]
    fn a_record_that_is_out_of_order_is_named_with_its_file_and_offset() {
        let directory = tempfile::tempdir().unwrap();
        let first = [record("a", "1"), record("b", "2"), record("b", "1")].concat();
        fs::write(directory.path().join("part-00000.bin"), first).unwrap();
        fs::write(directory.path().join("part-00001.bin"), record("b", "0")).unwrap();
        fs::write(directory.path().join(".hidden"), record("a", "0")).unwrap();
        verified(directory.path(), true).unwrap();

        let last = [record("c", "0"), record("\u{1}", "0")].concat();
        fs::write(directory.path().join("part-00002.bin"), last).unwrap();
        let error = verified(directory.path(), true).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        let text = error.to_string();
        assert!(text.contains("part-00002.bin is out of order at byte 100"), "{text}");
        assert!(text.contains("at byte 0 of"), "{text}");
        assert!(text.contains("0x0120"), "{text}");
        verified(directory.path(), false).unwrap();
    }

    #[test]
    fn what_is_no_record_is_named_and_what_is_not_there_is_wrong_usage() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("part-00000.bin");
        fs::write(&path, record("a", "1") + "b").unwrap();
        let error = verified(&path, false).unwrap_err().to_string();
        assert!(error.contains("101 bytes"), "{error}");
        fs::write(&path, record("a", "1").replace('\n', "x")).unwrap();
        let error = verified(&path, false).unwrap_err().to_string();
        assert!(error.contains("at byte 0"), "{error}");
        let error = verified(&directory.path().join("gone"), true).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }
}
