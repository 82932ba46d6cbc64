//! Reads a range of subpartitions of one partition file.

use std::path::{Path, PathBuf};

use regrow_protocol::{DataDirectoryId, PartitionId, SubpartitionRange};

use crate::{
    block_cursor::{BlockCursor, NextBlock},
    fetch_error::FetchError,
    partition_file::{PartitionFile, decode_index, fetch_error},
    span_reader::SpanReader,
    trailer::TrailerError,
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
    cursor: BlockCursor,
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
        let path = PartitionFile::path(root, directory, partition);
        if range.start >= range.end {
            let cursor = BlockCursor::default();
            return Ok(Self { partition, path, file: None, cursor, failed: false });
        }
        let mut opened = PartitionFile::open(path, partition)?;
        let index = opened.index(range)?;
        let (regions, data_bytes) = (opened.regions(), opened.data_bytes());
        let segments = decode_index(&index, range, regions, data_bytes)
            .map_err(|error| opened.error(error))?;
        let cursor = BlockCursor::new(segments);
        let (file, path) = opened.into_file();
        let file = Some(SpanReader::new(file, cursor.bytes()));
        Ok(Self { partition, path, file, cursor, failed: false })
    }

    /// Reads the next block into `block`, in place of what is in it; false at the end. A `block`
    /// that is handed in again and again is not allocated again.
    ///
    /// # Errors
    /// As [`FetchError`] tells; the reader gives nothing more then but the same kind of error.
    pub fn next_block(&mut self, block: &mut Vec<u8>) -> Result<bool, FetchError> {
        if self.failed {
            return Err(self.error(TrailerError::damaged("an earlier read of it failed")));
        }
        self.try_next(block).map_err(|error| {
            block.clear();
            self.failed = true;
            self.error(error)
        })
    }

    /// Records in what it has not begun to read: all of the range, right after it was opened.
    pub fn records(&self) -> u64 {
        self.cursor.records()
    }

    /// What is being read.
    pub fn partition(&self) -> PartitionId {
        self.partition
    }

    fn try_next(&mut self, block: &mut Vec<u8>) -> Result<bool, TrailerError> {
        let (Some(file), cursor) = (&mut self.file, &mut self.cursor) else {
            block.clear();
            return Ok(false);
        };
        match cursor.advance()? {
            NextBlock::Follows => {}
            NextBlock::Begins { segment, span_end } => {
                if !file.is_within(segment.offset, segment.offset + segment.length) {
                    file.go_to(segment.offset, span_end)?;
                }
            }
            NextBlock::None => {
                block.clear();
                return Ok(false);
            }
        }
        cursor.expect_header()?;
        let header = file.read_header()?;
        let length = cursor.expect_block(header)?;
        file.read_block(length, block)?;
        cursor.accept(header, block)?;
        Ok(true)
    }

    fn error(&self, error: TrailerError) -> FetchError {
        fetch_error(self.partition, &self.path, error)
    }
}
