//! Goes through the blocks of some segments and verifies them.

use crate::{
    block_header::{BLOCK_BYTES_MAX, BlockHeader},
    segment::Segment,
    trailer::TrailerError,
};

/// Goes through the blocks of segments in order, wherever their bytes come from, and verifies that
/// they are those that the index tells of.
#[derive(Debug, Default)]
pub(crate) struct BlockCursor {
    /// Those still to read, the next one last.
    segments: Vec<Segment>,
    /// The one being read.
    current: Segment,
    /// What was read of it.
    read: Segment,
}

/// Where the next block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextBlock {
    /// Right behind the one before.
    Follows,
    /// At the start of this segment, in one piece with all up to `span_end`.
    Begins {
        /// Which one.
        segment: Segment,
        /// Offset in the file.
        span_end: u64,
    },
    /// There is none.
    None,
}

impl BlockCursor {
    /// A cursor before the first block of `segments`, none of which is empty.
    pub(crate) fn new(mut segments: Vec<Segment>) -> Self {
        segments.reverse();
        Self { segments, ..Self::default() }
    }

    /// Records in what it has not begun to read.
    pub(crate) fn records(&self) -> u64 {
        self.segments.iter().fold(0, |records, segment| records.saturating_add(segment.records))
    }

    /// Bytes of what it has not begun to read.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.length).sum()
    }

    /// Goes to the next block; its header is to be read next.
    pub(crate) fn advance(&mut self) -> Result<NextBlock, TrailerError> {
        if self.read.length < self.current.length {
            return Ok(NextBlock::Follows);
        }
        if self.read != self.current {
            return Err(TrailerError::damaged(
                "a segment has other blocks than its index entry tells of",
            ));
        }
        let Some(segment) = self.segments.pop() else { return Ok(NextBlock::None) };
        self.read =
            Segment { offset: segment.offset, records: segment.records, ..Segment::default() };
        self.current = segment;
        Ok(NextBlock::Begins { segment, span_end: self.end_of_span(segment) })
    }

    /// Where the bytes end that lie in one piece from `first` on.
    fn end_of_span(&self, first: Segment) -> u64 {
        let mut end = first.offset + first.length;
        for next in self.segments.iter().rev() {
            if next.offset != end {
                break;
            }
            end += next.length;
        }
        end
    }

    /// Fails unless there is room for a header.
    pub(crate) fn expect_header(&self) -> Result<(), TrailerError> {
        if self.left() < BlockHeader::BYTES as u64 {
            return Err(TrailerError::damaged("a segment ends within the header of a block"));
        }
        Ok(())
    }

    /// The length of the block behind `header`.
    pub(crate) fn expect_block(&self, header: BlockHeader) -> Result<usize, TrailerError> {
        let length = header.length as usize;
        let left = self.left().saturating_sub(BlockHeader::BYTES as u64);
        if length > BLOCK_BYTES_MAX || u64::from(header.length) > left {
            return Err(TrailerError::damaged("a block has an impossible length"));
        }
        Ok(length)
    }

    /// Verifies a block and counts it as read.
    pub(crate) fn accept(&mut self, header: BlockHeader, block: &[u8]) -> Result<(), TrailerError> {
        if !header.fits(block) {
            return Err(TrailerError::damaged("a block has a wrong checksum"));
        }
        self.read.add_block(header, 0);
        Ok(())
    }

    /// What was not read of the current segment.
    fn left(&self) -> u64 {
        self.current.length - self.read.length
    }
}
