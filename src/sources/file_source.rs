//! A source that reads files.

use std::{sync::Arc, vec::IntoIter};

use regrow_actors::task::{Task, TaskContext};
use regrow_protocol::{Split, TaskDeployment, TaskFailure};

use super::{
    file_range::{FileRange, numbered, ranges},
    file_splits::{Borders, divide, sample_of},
    input_file::InputFile,
    input_path::InputPath,
    read_error::ReadError,
    source::SplitProgress,
    split_task::{ReadSplits, SplitTask},
};
use crate::{
    chain::{Chain, ChainStart, Consume, DiscoverSplits},
    record::Record,
};

/// Longest record that a task reads when it was granted little memory.
const RECORD_BYTES_MIN: u64 = 1 << 20;

/// Which part of a task's memory a record of a file may take.
const MEMORY_SHARE: u64 = 4;

/// What the records of files look like.
pub(crate) trait FileFormat: Send + Sync + 'static {
    /// A record.
    type Item: Record + ?Sized;
    /// Reads them.
    type Reader: ReadRange<Self::Item>;

    /// The operator's name.
    const NAME: &'static str;

    /// Checks what a listing tells of a file.
    fn check(&self, file: &InputFile) -> Result<(), String> {
        let _ = file;
        Ok(())
    }

    /// Where files may be cut.
    fn borders(&self) -> impl Borders;

    /// Begins a range of a file whose records have at most `record_bytes_max`.
    fn open(&self, range: FileRange, record_bytes_max: u64) -> Result<Self::Reader, ReadError>;
}

/// Reads the records that start in a range of a file.
pub(crate) trait ReadRange<R: ?Sized>: Send + 'static {
    /// Passes on some of the records.
    fn read<E: Consume<R>>(
        &mut self,
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<SplitProgress, TaskFailure>;
}

/// A source that reads files: a chain starts with it.
pub(crate) struct FileSource<F> {
    input: InputPath,
    format: Arc<F>,
}

impl<F: FileFormat> FileSource<F> {
    /// Reads `input`.
    pub(super) fn new(input: InputPath, format: F) -> Self {
        Self { input, format: Arc::new(format) }
    }

    fn divided(&self) -> Result<Vec<Vec<FileRange>>, String> {
        let files = self.input.list()?;
        files.iter().try_for_each(|file| self.format.check(file))?;
        divide(&files, &mut self.format.borders())
    }
}

impl<F: FileFormat> DiscoverSplits for FileSource<F> {
    fn discover_splits(&self) -> Result<Vec<Split>, String> {
        numbered(self.divided()?)
    }

    fn sample_splits(&self) -> Result<Vec<Split>, String> {
        numbered(self.divided()?.into_iter().map(sample_of).collect())
    }
}

impl<F: FileFormat> Chain for FileSource<F> {
    type Item = F::Item;

    fn task<E: Consume<F::Item>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        let reads = FileReads {
            format: Arc::clone(&self.format),
            record_bytes_max: (deployment.memory_bytes / MEMORY_SHARE).max(RECORD_BYTES_MIN),
            ranges: Vec::new().into_iter(),
            reader: None,
        };
        Ok(Box::new(SplitTask::new(reads, end)))
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        names.push(F::NAME);
    }

    fn start(&self) -> ChainStart<'_> {
        ChainStart::Splits(self)
    }
}

struct FileReads<F: FileFormat> {
    format: Arc<F>,
    record_bytes_max: u64,
    /// What is left of the current split.
    ranges: IntoIter<FileRange>,
    reader: Option<F::Reader>,
}

impl<F: FileFormat> ReadSplits for FileReads<F> {
    type Item = F::Item;

    fn open(&mut self, split: &Split) -> Result<(), TaskFailure> {
        self.ranges = ranges(split).map_err(TaskFailure::unrecoverable)?;
        Ok(())
    }

    fn read<E: Consume<F::Item>>(
        &mut self,
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<SplitProgress, TaskFailure> {
        let reader = if let Some(reader) = &mut self.reader {
            reader
        } else {
            let Some(range) = self.ranges.next() else { return Ok(SplitProgress::End) };
            self.reader.insert(self.format.open(range, self.record_bytes_max)?)
        };
        if reader.read(end, context)? == SplitProgress::End {
            self.reader = None;
        }
        Ok(SplitProgress::More)
    }
}
