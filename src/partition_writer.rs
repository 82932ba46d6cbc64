//! Writes records to the subpartitions of an output, in blocks.

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

/// Bytes of a full block: large enough for the disk, small enough to be many.
const BLOCK_BYTES_MAX: usize = 64 << 10;

/// Bytes of a full block where memory is scarce; below this, headers would outweigh records.
const BLOCK_BYTES_MIN: usize = 1 << 10;

/// One block in the making per subpartition.
pub(crate) struct PartitionWriter {
    output: usize,
    blocks: Vec<Block>,
    block_bytes: usize,
}

#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    records: u64,
}

impl PartitionWriter {
    /// Makes the writer of output number `output`, with blocks that take `memory_bytes` together.
    pub(crate) fn new(output: usize, subpartitions: u32, memory_bytes: u64) -> Self {
        let per_block = memory_bytes / u64::from(subpartitions.max(1));
        let block_bytes = usize::try_from(per_block).unwrap_or(usize::MAX);
        Self {
            output,
            blocks: (0..subpartitions.max(1)).map(|_| Block::default()).collect(),
            block_bytes: block_bytes.clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX),
        }
    }

    /// Writes a record to the subpartition of its key.
    pub(crate) fn write(
        &mut self,
        hash: u64,
        encode: impl FnOnce(&mut Vec<u8>),
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let subpartition = self.subpartition(hash);
        let block = &mut self.blocks[subpartition as usize];
        encode(&mut block.bytes);
        block.records += 1;
        if block.bytes.len() < self.block_bytes {
            return Ok(());
        }
        block.send(self.output, subpartition, context)
    }

    /// Writes all blocks that hold records.
    pub(crate) fn flush(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        for (subpartition, block) in (0..).zip(&mut self.blocks) {
            if block.records > 0 {
                block.send(self.output, subpartition, context)?;
            }
        }
        Ok(())
    }

    /// Maps a hash to a subpartition, by bits that a hash table of the consumer does not look at
    /// first; else all keys of a subpartition would crowd together in it.
    fn subpartition(&self, hash: u64) -> u32 {
        let middle = (hash >> 16) & u64::from(u32::MAX);
        ((middle * self.blocks.len() as u64) >> 32) as u32
    }
}

impl Block {
    fn send(
        &mut self,
        output: usize,
        subpartition: u32,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        if context.is_cancelled() {
            return Err(TaskFailure::Cancelled);
        }
        context.write_block(output, subpartition, &self.bytes, self.records)?;
        self.bytes.clear();
        self.records = 0;
        Ok(())
    }
}
