//! Blocks that wait in memory until they are written.

use std::{mem::size_of, sync::Arc};

use crate::{
    block_header::BlockHeader,
    chunk_pool::{CHUNK_BYTES, ChunkPool},
};

/// Blocks of all outputs of an attempt, with their headers, in memory until they are written.
///
/// Blocks are copied once, in order of arrival, into chunks of one size, across their borders;
/// pieces tell where they lie. Ordering them by subpartition moves pieces, not bytes.
#[derive(Debug)]
pub(crate) struct BlockBuffer {
    pool: Arc<ChunkPool>,
    chunks: Vec<Vec<u8>>,
    /// Bytes in all chunks; all of them but the last used one are full.
    length: usize,
    pieces: Vec<Piece>,
}

/// Some blocks of one subpartition that arrived one after another.
#[derive(Clone, Copy, Debug)]
struct Piece {
    output: u32,
    subpartition: u32,
    start: usize,
    length: usize,
}

impl BlockBuffer {
    /// An empty buffer that takes its memory from `pool`.
    pub(crate) fn new(pool: Arc<ChunkPool>) -> Self {
        Self { pool, chunks: Vec::new(), length: 0, pieces: Vec::new() }
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.length + self.pieces.len() * size_of::<Piece>()
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a block at the end.
    pub(crate) fn push(
        &mut self,
        output: u32,
        subpartition: u32,
        header: BlockHeader,
        block: &[u8],
    ) {
        let start = self.length;
        self.append(&header.to_bytes());
        self.append(block);
        let length = self.length - start;
        match self.pieces.last_mut() {
            Some(last) if (last.output, last.subpartition) == (output, subpartition) => {
                last.length += length;
            }
            _ => self.pieces.push(Piece { output, subpartition, start, length }),
        }
    }

    fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (chunk, used) = (self.length / CHUNK_BYTES, self.length % CHUNK_BYTES);
            if chunk == self.chunks.len() {
                self.chunks.push(self.pool.take());
            }
            let (now, rest) = bytes.split_at(bytes.len().min(CHUNK_BYTES - used));
            if let Some(chunk) = self.chunks.get_mut(chunk) {
                chunk.extend_from_slice(now);
            }
            self.length += now.len();
            bytes = rest;
        }
    }

    /// Orders the blocks by output, then subpartition, then arrival.
    pub(crate) fn sort(&mut self) {
        self.pieces.sort_by_key(|piece| (piece.output, piece.subpartition));
    }

    /// The bytes of the blocks of `output`, in the order that [`sort`](Self::sort) made.
    pub(crate) fn slices(&self, output: u32) -> impl Iterator<Item = &[u8]> {
        let start = self.pieces.partition_point(|piece| piece.output < output);
        let end = self.pieces.partition_point(|piece| piece.output <= output);
        let pieces = self.pieces.get(start..end).unwrap_or_default();
        pieces.iter().flat_map(|piece| self.piece(*piece))
    }

    fn piece(&self, piece: Piece) -> impl Iterator<Item = &[u8]> {
        let end = piece.start + piece.length;
        (piece.start / CHUNK_BYTES..end.div_ceil(CHUNK_BYTES)).filter_map(move |chunk| {
            let from = piece.start.max(chunk * CHUNK_BYTES) - chunk * CHUNK_BYTES;
            let to = end.min((chunk + 1) * CHUNK_BYTES) - chunk * CHUNK_BYTES;
            self.chunks.get(chunk)?.get(from..to)
        })
    }

    /// Forgets all blocks and keeps memory for `keep_bytes` of the next ones.
    pub(crate) fn clear(&mut self, keep_bytes: usize) {
        self.pieces.clear();
        self.length = 0;
        let kept = keep_bytes.div_ceil(CHUNK_BYTES).min(self.chunks.len());
        self.pool.give_back(self.chunks.drain(kept..));
        for chunk in &mut self.chunks {
            chunk.clear();
        }
    }
}

impl Drop for BlockBuffer {
    fn drop(&mut self) {
        self.clear(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(buffer: &BlockBuffer, output: u32) -> Vec<u8> {
        buffer.slices(output).flatten().copied().collect()
    }

    fn stored(block: &[u8]) -> Vec<u8> {
        let mut bytes = BlockHeader::of(block).unwrap().to_bytes().to_vec();
        bytes.extend_from_slice(block);
        bytes
    }

    #[test]
    fn blocks_come_by_output_then_subpartition_then_arrival() {
        let mut buffer = BlockBuffer::new(Arc::default());
        let large = vec![7; 2 * CHUNK_BYTES + 3];
        let blocks: [(u32, u32, &[u8]); 5] =
            [(0, 5, b"a"), (1, 0, b"b"), (0, 2, &large), (0, 2, b""), (0, 5, b"c")];
        for round in 0..2 {
            for (output, subpartition, block) in blocks {
                buffer.push(output, subpartition, BlockHeader::of(block).unwrap(), block);
            }
            buffer.sort();
            let expected = [stored(&large), stored(b""), stored(b"a"), stored(b"c")].concat();
            assert!(content(&buffer, 0) == expected, "round {round}");
            assert_eq!(content(&buffer, 1), stored(b"b"));
            assert_eq!(content(&buffer, 2), b"");
            buffer.clear(CHUNK_BYTES);
            assert!(buffer.is_empty() && buffer.bytes() == 0 && buffer.chunks.len() == 1);
        }
    }
}
