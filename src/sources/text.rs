//! Reads text, line by line, from a file or a directory of files.

mod line_reader;
mod split;

use std::{fs::File, path::PathBuf, vec::IntoIter};

use regrow_actors::task::{NextSplit, Step, Task, TaskContext};
use regrow_protocol::{Split, TaskDeployment, TaskFailure};

use self::{
    line_reader::{LineReader, ReadError},
    split::FileRange,
};
use crate::chain::{Chain, ChainStart, Consume, DiscoverSplits};

/// Longest line that a task reads when it was granted little memory.
const LINE_BYTES_MIN: u64 = 1 << 20;

/// A file, or all files of a directory, as lines.
pub struct TextSource {
    path: PathBuf,
}

impl TextSource {
    /// Reads `path`, which is absolute.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }
}

impl DiscoverSplits for TextSource {
    fn discover_splits(&self) -> Result<Vec<Split>, String> {
        split::discover(&self.path)
    }

    fn sample_splits(&self) -> Result<Vec<Split>, String> {
        split::sample(&self.path)
    }
}

impl Chain for TextSource {
    type Item = str;

    fn task<E: Consume<str>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        let line_bytes_max = (deployment.memory_bytes / 4).max(LINE_BYTES_MIN);
        let ranges = Vec::new().into_iter();
        Ok(Box::new(TextTask { end, line_bytes_max, ranges, reader: None }))
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        names.push("read_text");
    }

    fn start(&self) -> ChainStart<'_> {
        ChainStart::Splits(self)
    }
}

struct TextTask<E> {
    end: E,
    line_bytes_max: u64,
    /// What is left of the current split.
    ranges: IntoIter<FileRange>,
    reader: Option<LineReader<File>>,
}

impl<E: Consume<str>> Task for TextTask<E> {
    fn run(&mut self, context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
        loop {
            if let Some(reader) = &mut self.reader {
                read(reader, &mut self.end, context)?;
                self.reader = None;
            }
            if let Some(range) = self.ranges.next() {
                self.reader = Some(LineReader::open(&range, self.line_bytes_max).map_err(failure)?);
                continue;
            }
            match context.take_split() {
                None => return Ok(Step::AwaitSplit),
                Some(NextSplit::Split(split)) => {
                    self.ranges = split::ranges(&split).map_err(TaskFailure::unrecoverable)?;
                }
                Some(NextSplit::End) => {
                    self.end.finish(context)?;
                    return Ok(Step::Finished);
                }
            }
        }
    }
}

/// Passes on all lines of `reader`.
fn read<E: Consume<str>>(
    reader: &mut LineReader<File>,
    end: &mut E,
    context: &mut dyn TaskContext,
) -> Result<(), TaskFailure> {
    while let Some(lines) = reader.next_lines().map_err(failure)? {
        if context.is_cancelled() {
            return Err(TaskFailure::Cancelled);
        }
        let mut count = 0;
        for line in Lines(lines) {
            end.consume(line, context)?;
            count += 1;
        }
        let metrics = context.metrics();
        metrics.records_in += count;
        metrics.bytes_in += lines.len() as u64;
    }
    Ok(())
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

fn failure(error: ReadError) -> TaskFailure {
    match error {
        ReadError::Io { .. } => TaskFailure::task(error.to_string()),
        ReadError::NotUtf8 { .. } | ReadError::Shrunk { .. } | ReadError::LongLine { .. } => {
            TaskFailure::unrecoverable(error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_line_feeds_with_or_without_carriage_return() {
        let lines: Vec<&str> = Lines("a\r\n\nb\rc\nlast").collect();
        assert_eq!(lines, ["a", "", "b\rc", "last"]);
    }
}
