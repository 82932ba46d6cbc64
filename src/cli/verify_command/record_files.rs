//! Reads the records of files, one after the other.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use crate::cli::{error::CliError, generated_records::RECORD_BYTES};

/// Bytes that are read at once: whole records.
const BUFFER_BYTES: usize = 10_000 * RECORD_BYTES;

/// The records of a file, or of the files of a directory, in the order of their names.
pub(super) struct RecordFiles {
    paths: Vec<PathBuf>,
    /// The next file to open.
    next: usize,
    open: Option<File>,
    buffer: Vec<u8>,
    /// Where the next record begins within the buffer, and where the buffer begins in its file.
    start: usize,
    offset: u64,
}

/// Where a record stands.
#[derive(Clone, Copy)]
pub(super) struct Place {
    file: usize,
    /// Where it begins in its file.
    pub(super) offset: u64,
}

impl RecordFiles {
    /// Lists what is to be read.
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let paths = list(path).map_err(|error| {
            CliError::Usage(format!(
                "cannot list {}: {error}; give a file of records, or a directory of such files",
                path.display()
            ))
        })?;
        Ok(Self { paths, next: 0, open: None, buffer: Vec::new(), start: 0, offset: 0 })
    }

    /// The next record and where it stands; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(&[u8], Place)>, CliError> {
        while self.start == self.buffer.len() {
            if !self.fill()? {
                return Ok(None);
            }
        }
        let start = self.start;
        self.start += RECORD_BYTES;
        let place = Place { file: self.next - 1, offset: self.offset + start as u64 };
        let record = &self.buffer[start..self.start];
        if record.last() == Some(&b'\n') {
            return Ok(Some((record, place)));
        }
        Err(CliError::Failed(format!(
            "{} holds no record at byte {}: the last of {RECORD_BYTES} bytes must be a line feed",
            self.path(place).display(),
            place.offset
        )))
    }

    /// How many files there are.
    pub(super) fn count(&self) -> usize {
        self.paths.len()
    }

    /// The file of a place.
    pub(super) fn path(&self, place: Place) -> &Path {
        &self.paths[place.file]
    }

    /// Reads on; false when nothing is left.
    fn fill(&mut self) -> Result<bool, CliError> {
        self.offset += self.buffer.len() as u64;
        self.start = 0;
        self.buffer.clear();
        if let Some(file) = &mut self.open {
            let path = &self.paths[self.next - 1];
            file.take(BUFFER_BYTES as u64)
                .read_to_end(&mut self.buffer)
                .map_err(|error| cannot_read(path, &error))?;
            let left_over = self.buffer.len() % RECORD_BYTES;
            if left_over > 0 {
                let bytes = self.offset + self.buffer.len() as u64;
                return Err(CliError::Failed(format!(
                    "{} has {bytes} bytes: that is no multiple of {RECORD_BYTES}, the length of a \
                     record, and {left_over} are left over",
                    path.display()
                )));
            }
            if self.buffer.is_empty() {
                self.open = None;
            }
            return Ok(true);
        }
        let Some(path) = self.paths.get(self.next) else { return Ok(false) };
        self.open = Some(File::open(path).map_err(|error| cannot_read(path, &error))?);
        self.next += 1;
        self.offset = 0;
        Ok(true)
    }
}

/// `path` itself, or the files in it, without hidden ones.
fn list(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let hidden = name.as_encoded_bytes().first().is_some_and(|first| b"._".contains(first));
        if !hidden && fs::metadata(entry.path())?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

fn cannot_read(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed(format!("cannot read {}: {error}", path.display()))
}
