//! Finds where a file of CSV may be cut, and the line of each cut.

use std::path::PathBuf;

use super::{csv_format::CsvFormat, record_scanner::RecordScanner};
use crate::sources::{
    file_input::FileInput,
    file_range::FileRange,
    file_splits::{Border, Borders},
    input_file::InputFile,
    read_error::ReadError,
};

/// Bytes that are scanned at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Scans files for quotes and line feeds, each from its beginning up to its last cut.
pub(super) struct ScannedBorders {
    format: CsvFormat,
    scan: Option<Scan>,
}

struct Scan {
    path: PathBuf,
    input: FileInput,
    scanner: RecordScanner,
    /// Number of the line of the next byte that is scanned, from 1.
    line: u64,
    /// What was read; from `scanned` on it is to be scanned.
    buffer: Vec<u8>,
    filled: usize,
    scanned: usize,
}

impl ScannedBorders {
    /// Scans files of `format`.
    pub(super) fn new(format: &CsvFormat) -> Self {
        Self { format: format.clone(), scan: None }
    }
}

impl Borders for ScannedBorders {
    fn border(&mut self, file: &InputFile, _: u64, wanted: u64) -> Result<Border, String> {
        let mut scan = match self.scan.take().filter(|scan| scan.path == file.path) {
            Some(scan) => scan,
            None => Scan::open(file, &self.format).map_err(|error| error.to_string())?,
        };
        let border = scan.border(wanted).map_err(|error| error.to_string())?;
        self.scan = Some(scan);
        Ok(border)
    }
}

impl Scan {
    fn open(file: &InputFile, format: &CsvFormat) -> Result<Self, ReadError> {
        let range = FileRange::whole(file);
        Ok(Self {
            path: file.path.clone(),
            input: FileInput::open(&range, 0)?,
            scanner: RecordScanner::new(format, 0),
            line: 1,
            buffer: vec![0; CHUNK_BYTES],
            filled: 0,
            scanned: 0,
        })
    }

    /// The end of the first record that ends at `wanted` or later; the end of the file if none does.
    fn border(&mut self, wanted: u64) -> Result<Border, ReadError> {
        loop {
            let left = &self.buffer[self.scanned..self.filled];
            // The last byte that may come before the one that ends the record.
            let before = wanted.saturating_sub(1).saturating_sub(self.scanner.position());
            let before =
                usize::try_from(before).map_or(left.len(), |before| before.min(left.len()));
            self.scanner.advance(&left[..before]);
            let end = self.scanner.advance_to_end(&left[before..]);
            let length = end.map_or(left.len(), |end| before + end);
            self.line += memchr::memchr_iter(b'\n', &left[..length]).count() as u64;
            self.scanned += length;
            if end.is_some() || !self.fill()? {
                return Ok(Border { offset: self.scanner.position(), line: self.line });
            }
        }
    }

    /// Reads on; false at the end of the file.
    fn fill(&mut self) -> Result<bool, ReadError> {
        self.filled = self.input.read(&mut self.buffer)?;
        self.scanned = 0;
        Ok(self.filled > 0)
    }
}
