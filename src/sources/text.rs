//! Reads text, line by line.

mod line_reader;

use std::path::Path;

use regrow_actors::task::{Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};

use self::line_reader::LineReader;
use super::{
    file_range::FileRange,
    file_source::{FileFormat, FileSource, ReadRange},
    file_splits::{Border, Borders},
    input_file::InputFile,
    read_error::ReadError,
    source::SplitProgress,
};
use crate::{
    chain::{Chain, ChainStart, Consume},
    data_set::DataSet,
    environment::Environment,
};

/// Files as lines of text.
pub struct TextSource(FileSource<Text>);

impl Environment {
    /// Reads text, as lines without their ends (`\n` or `\r\n`): a file, all files of a directory
    /// (without those whose name begins with `.` or `_`), or the files that match a pattern like
    /// `logs/2024-*/part-*.txt` or `logs/**/*.txt`, sorted by path. A file whose name ends in `.gz`
    /// is decompressed, by one task. A byte order mark at the start of a file is dropped.
    ///
    /// A line that is not valid UTF-8 fails the job, with the file and the offset. So does a file
    /// that changes or vanishes between its listing and its reading.
    pub fn read_text(&self, path: impl AsRef<Path>) -> DataSet<'_, TextSource> {
        DataSet::from_source(self, TextSource(FileSource::new(self.input(path.as_ref()), Text)))
    }
}

impl Chain for TextSource {
    type Item = str;

    fn task<E: Consume<str>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        self.0.task(deployment, end)
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        self.0.describe(names);
    }

    fn start(&self) -> ChainStart<'_> {
        self.0.start()
    }
}

/// The format of text files.
pub(crate) struct Text;

impl FileFormat for Text {
    type Item = str;
    type Reader = LineReader;

    const NAME: &'static str = "read_text";

    fn borders(&self) -> impl Borders {
        AnyByte
    }

    fn open(&self, range: FileRange, record_bytes_max: u64) -> Result<LineReader, ReadError> {
        LineReader::open(&range, record_bytes_max)
    }
}

/// A text may be cut anywhere: a line belongs to where it starts.
struct AnyByte;

impl Borders for AnyByte {
    fn border(&mut self, _: &InputFile, _: u64, wanted: u64) -> Result<Border, String> {
        Ok(Border { offset: wanted, line: 0 })
    }
}

impl ReadRange<str> for LineReader {
    fn read<E: Consume<str>>(
        &mut self,
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<SplitProgress, TaskFailure> {
        let Some(lines) = self.next_lines()? else { return Ok(SplitProgress::End) };
        let mut count = 0;
        for line in Lines(lines) {
            end.consume(line, context)?;
            count += 1;
        }
        let metrics = context.metrics();
        metrics.records_in += count;
        metrics.bytes_in += lines.len() as u64;
        Ok(SplitProgress::More)
    }
}

/// The lines of a text, without `\n` or `\r\n`.
struct Lines<'a>(&'a str);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        if self.0.is_empty() {
            return None;
        }
        let (line, rest) = match memchr::memchr(b'\n', self.0.as_bytes()) {
            Some(end) => (&self.0[..end], &self.0[end + 1..]),
            None => (self.0, ""),
        };
        self.0 = rest;
        Some(line.strip_suffix('\r').unwrap_or(line))
    }
}

#[cfg(test)]
mod tests;
