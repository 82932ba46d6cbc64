//! What stands before each block in a partition file.

/// Longest block that can be written, in bytes: a reader reserves at most this much at a time.
pub const BLOCK_BYTES_MAX: usize = 16 << 20;

/// Length and checksum of a block: 8 bytes in the file, drawn in
/// [`partition_writer`](crate::partition_writer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    /// Bytes of the block, without this header; at most [`BLOCK_BYTES_MAX`].
    pub(crate) length: u32,
    /// CRC32C of the length's four bytes, then the block.
    pub(crate) checksum: u32,
}

impl BlockHeader {
    /// Bytes in the file.
    pub(crate) const BYTES: usize = 8;

    /// Describes `block`; `None` when it is too long.
    pub(crate) fn of(block: &[u8]) -> Option<Self> {
        let length = u32::try_from(block.len()).ok().filter(|_| block.len() <= BLOCK_BYTES_MAX)?;
        Some(Self { length, checksum: checksum(length, block) })
    }

    /// As stored.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let [l0, l1, l2, l3] = self.length.to_le_bytes();
        let [c0, c1, c2, c3] = self.checksum.to_le_bytes();
        [l0, l1, l2, l3, c0, c1, c2, c3]
    }

    /// Reads what [`to_bytes`](Self::to_bytes) gave; any bytes are a header, perhaps a wrong one.
    pub(crate) fn from_bytes([l0, l1, l2, l3, c0, c1, c2, c3]: [u8; Self::BYTES]) -> Self {
        Self {
            length: u32::from_le_bytes([l0, l1, l2, l3]),
            checksum: u32::from_le_bytes([c0, c1, c2, c3]),
        }
    }

    /// Whether `block` is the one described.
    pub(crate) fn fits(self, block: &[u8]) -> bool {
        block.len() == self.length as usize && checksum(self.length, block) == self.checksum
    }
}

fn checksum(length: u32, block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&length.to_le_bytes()), block)
}
