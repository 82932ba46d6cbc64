//! The blocks of one subpartition in one region of a partition file.

use crate::{block_header::BlockHeader, fields::Fields};

/// The blocks of one subpartition in one region, which lie in one piece: 40 bytes in the index,
/// drawn in [`partition_writer`](crate::partition_writer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Where the first block's header begins, in bytes from the start of the file.
    pub(crate) offset: u64,
    /// Bytes of all blocks with their headers.
    pub(crate) length: u64,
    /// Records in all blocks.
    pub(crate) records: u64,
    /// Number of blocks.
    pub(crate) blocks: u64,
    /// CRC32C over the blocks' headers, and so over the checksum of each block.
    pub(crate) headers_checksum: u32,
}

impl Segment {
    /// Bytes in the index.
    pub(crate) const BYTES: usize = 40;

    /// Counts a block at the end.
    pub(crate) fn add_block(&mut self, header: BlockHeader, records: u64) {
        self.length += BlockHeader::BYTES as u64 + u64::from(header.length);
        self.records = self.records.saturating_add(records);
        self.blocks += 1;
        self.add_header(header);
    }

    /// Takes a header into the checksum alone.
    pub(crate) fn add_header(&mut self, header: BlockHeader) {
        self.headers_checksum = crc32c::crc32c_append(self.headers_checksum, &header.to_bytes());
    }

    /// Counts all blocks of `next`, which are copied behind those of this one.
    pub(crate) fn append(&mut self, next: &Self) {
        let next_headers = usize::try_from(next.blocks).unwrap_or(usize::MAX);
        self.headers_checksum = crc32c::crc32c_combine(
            self.headers_checksum,
            next.headers_checksum,
            next_headers.saturating_mul(BlockHeader::BYTES),
        );
        self.length += next.length;
        self.records = self.records.saturating_add(next.records);
        self.blocks += next.blocks;
    }

    /// Bytes of the blocks without their headers.
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.length.saturating_sub(self.blocks.saturating_mul(BlockHeader::BYTES as u64))
    }

    /// Adds the entry to an index, at `position` of it.
    pub(crate) fn encode(&self, position: u32, index: &mut Vec<u8>) {
        let start = index.len();
        for field in [self.offset, self.length, self.records, self.blocks] {
            index.extend_from_slice(&field.to_le_bytes());
        }
        index.extend_from_slice(&self.headers_checksum.to_le_bytes());
        let checksum = checksum(position, index.get(start..).unwrap_or_default());
        index.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Reads the entry at `position` of an index; `None` when it is damaged or not of there.
    pub(crate) fn decode(position: u32, entry: &[u8; Self::BYTES]) -> Option<Self> {
        let (content, stored) = entry.split_last_chunk::<4>()?;
        if checksum(position, content) != u32::from_le_bytes(*stored) {
            return None;
        }
        let mut fields = Fields(content);
        Some(Self {
            offset: fields.u64()?,
            length: fields.u64()?,
            records: fields.u64()?,
            blocks: fields.u64()?,
            headers_checksum: fields.u32()?,
        })
    }
}

fn checksum(position: u32, content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&position.to_le_bytes()), content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(blocks: &[&[u8]]) -> Segment {
        let mut segment = Segment::default();
        for block in blocks {
            segment.add_block(BlockHeader::of(block).unwrap(), 1);
        }
        segment
    }

    #[test]
    fn appending_counts_as_if_written_in_one() {
        let mut first = segment(&[b"one", b""]);
        first.append(&segment(&[b"two", b"three"]));
        assert_eq!(first, segment(&[b"one", b"", b"two", b"three"]));
        assert_eq!(first.payload_bytes(), 11);
    }

    #[test]
    fn an_entry_is_read_at_its_own_position_only() {
        let mut index = Vec::new();
        let written = segment(&[b"one"]);
        written.encode(3, &mut index);
        let entry: [u8; Segment::BYTES] = index.try_into().unwrap();
        assert_eq!(Segment::decode(3, &entry), Some(written));
        assert_eq!(Segment::decode(4, &entry), None);
    }
}
