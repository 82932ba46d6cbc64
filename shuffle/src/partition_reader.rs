//! Reads a range of subpartitions of one partition file.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use regrow_protocol::{DataDirectoryId, PartitionId, SubpartitionRange};

use crate::{
    block_header::{BLOCK_BYTES_MAX, BlockHeader},
    fetch_error::FetchError,
    footer::Footer,
    run_file::RunFile,
    segment::Segment,
    span_reader::SpanReader,
    trailer::{TrailerError, read_footer},
};

/// Reads the blocks of a range of subpartitions of one partition, ordered by subpartition, then as
/// they were written. Each is verified before it is handed out.
///
/// Once open, it reads on when the partition is released.
#[derive(Debug)]
pub struct PartitionReader {
    partition: PartitionId,
    path: PathBuf,
    /// None for an empty range, which reads nothing.
    file: Option<SpanReader>,
    /// Those still to read, the next one last.
    segments: Vec<Segment>,
    /// The one being read.
    current: Segment,
    /// What was read of it.
    read: Segment,
    failed: bool,
}

impl PartitionReader {
    /// Opens a partition in the data directory `directory` under `root`, the directory that holds
    /// all data directories of the host. An empty range needs no file.
    ///
    /// # Errors
    /// As [`FetchError`] tells.
    pub fn open(
        root: &Path,
        directory: DataDirectoryId,
        partition: PartitionId,
        range: SubpartitionRange,
    ) -> Result<Self, FetchError> {
        let run = partition.attempt.run;
        let name = RunFile::Partition(partition).to_string();
        let path = root.join(directory.to_string()).join(run.to_string()).join(name);
        let (file, segments) = if range.start < range.end {
            let (file, segments) = open(&path, partition, range)?;
            (Some(file), segments)
        } else {
            (None, Vec::new())
        };
        let (current, read) = (Segment::default(), Segment::default());
        Ok(Self { partition, path, file, segments, current, read, failed: false })
    }

    /// Reads the next block into `block`, in place of what is in it; false at the end. A `block`
    /// that is handed in again and again is not allocated again.
    ///
    /// # Errors
    /// As [`FetchError`] tells; the reader gives nothing more then but the same kind of error.
    pub fn next_block(&mut self, block: &mut Vec<u8>) -> Result<bool, FetchError> {
        if self.failed {
            return Err(self.error(TrailerError::Damaged("an earlier read of it failed".into())));
        }
        self.try_next(block).map_err(|error| {
            block.clear();
            self.failed = true;
            self.error(error)
        })
    }

    /// Records in what it has not begun to read: all of the range, right after it was opened.
    pub fn records(&self) -> u64 {
        self.segments.iter().fold(0, |records, segment| records.saturating_add(segment.records))
    }

    /// What is being read.
    pub fn partition(&self) -> PartitionId {
        self.partition
    }

    fn try_next(&mut self, block: &mut Vec<u8>) -> Result<bool, TrailerError> {
        let Some(file) = &mut self.file else {
            block.clear();
            return Ok(false);
        };
        while self.read.length == self.current.length {
            if self.read != self.current {
                return Err(damaged("a segment has other blocks than its index entry tells of"));
            }
            let Some(next) = self.segments.pop() else {
                block.clear();
                return Ok(false);
            };
            if !file.is_within(next.offset, next.offset + next.length) {
                file.go_to(next.offset, end_of_span(next, &self.segments))?;
            }
            self.read =
                Segment { offset: next.offset, records: next.records, ..Segment::default() };
            self.current = next;
        }
        let left = self.current.length - self.read.length;
        let Some(left) = left.checked_sub(BlockHeader::BYTES as u64) else {
            return Err(damaged("a segment ends within the header of a block"));
        };
        let header = file.read_header()?;
        let length = header.length as usize;
        if length > BLOCK_BYTES_MAX || u64::from(header.length) > left {
            return Err(damaged("a block has an impossible length"));
        }
        file.read_block(length, block)?;
        if !header.fits(block) {
            return Err(damaged("a block has a wrong checksum"));
        }
        self.read.add_block(header, 0);
        Ok(true)
    }

    fn error(&self, error: TrailerError) -> FetchError {
        fetch_error(self.partition, &self.path, error)
    }
}

fn open(
    path: &Path,
    partition: PartitionId,
    range: SubpartitionRange,
) -> Result<(SpanReader, Vec<Segment>), FetchError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if is_gone(&error) => {
            return Err(FetchError::Gone { partition, path: path.to_owned() });
        }
        Err(error) => return Err(fetch_error(partition, path, error.into())),
    };
    let to_error = |error| fetch_error(partition, path, error);
    let (footer, _) = read_footer(&mut file, partition).map_err(to_error)?;
    if range.end > footer.subpartitions {
        let subpartitions = footer.subpartitions;
        return Err(FetchError::OutOfRange { partition, range, subpartitions });
    }
    let mut segments = read_index(&mut file, &footer, range).map_err(to_error)?;
    segments.reverse();
    let total = segments.iter().map(|segment| segment.length).sum();
    Ok((SpanReader::new(file, total), segments))
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Reads the index of `range` and verifies it; empty segments are left out.
fn read_index(
    file: &mut File,
    footer: &Footer,
    range: SubpartitionRange,
) -> Result<Vec<Segment>, TrailerError> {
    let regions = footer.regions;
    let first = range.start * regions;
    let count = (range.end - range.start) * regions;
    // At most SUBPARTITIONS_MAX times REGIONS_MAX entries, and no longer than the file.
    let mut bytes = vec![0; count as usize * Segment::BYTES];
    file.seek(SeekFrom::Start(footer.data_bytes + u64::from(first) * Segment::BYTES as u64))?;
    file.read_exact(&mut bytes)?;
    let (entries, _) = bytes.as_chunks::<{ Segment::BYTES }>();
    let mut segments = Vec::new();
    let mut data_left = footer.data_bytes;
    for (position, entry) in (first..).zip(entries) {
        let segment = Segment::decode(position, entry)
            .ok_or_else(|| damaged("an entry of its index has a wrong checksum"))?;
        let end = segment.offset.checked_add(segment.length);
        // Segments do not overlap, so their sum is limited by the data too.
        let rest = data_left.checked_sub(segment.length);
        let (Some(rest), true) = (rest, end.is_some_and(|end| end <= footer.data_bytes)) else {
            return Err(damaged("an entry of its index points outside of its blocks"));
        };
        data_left = rest;
        if segment.length > 0 {
            segments.push(segment);
        }
    }
    Ok(segments)
}

/// Where the bytes end that lie in one piece from `first` on; `rest` holds what follows, reversed.
fn end_of_span(first: Segment, rest: &[Segment]) -> u64 {
    let mut end = first.offset + first.length;
    for next in rest.iter().rev().take_while(|next| next.length > 0) {
        if next.offset != end {
            break;
        }
        end += next.length;
    }
    end
}

fn damaged(reason: &str) -> TrailerError {
    TrailerError::Damaged(reason.to_owned())
}

fn fetch_error(partition: PartitionId, path: &Path, error: TrailerError) -> FetchError {
    let path = path.to_owned();
    match error {
        TrailerError::Damaged(reason) => FetchError::Corrupt { partition, path, reason },
        TrailerError::Unreadable(source) => FetchError::Unreadable { partition, path, source },
    }
}
