//! Writes records to the subpartitions of an output, in blocks.

use regrow_actors::task::TaskContext;
use regrow_protocol::{TaskDeployment, TaskFailure};

use crate::{record::Record, spill::write_entry};

/// Bytes of a full block: large enough for the disk, small enough to be many.
const BLOCK_BYTES_MAX: usize = 64 << 10;

/// Bytes of a full block where memory is scarce; below this, headers would outweigh records.
const BLOCK_BYTES_MIN: usize = 1 << 10;

/// Bytes of a record at most, as it is written: with what stands before it, it makes one block.
const RECORD_BYTES_MAX: usize = regrow_actors::task::BLOCK_BYTES_MAX - BLOCK_BYTES_MAX;

/// Which part of a task's memory blocks in the making may take.
const MEMORY_SHARE: u64 = 4;

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
    /// Makes the writer of output number `output` of an attempt. Its blocks take a fourth of the
    /// attempt's memory, shared among its outputs.
    pub(crate) fn of(deployment: &TaskDeployment, output: usize) -> Self {
        let subpartitions =
            deployment.outputs.get(output).map_or(1, |spec| spec.subpartitions.max(1));
        let outputs = deployment.outputs.len().max(1) as u64;
        let memory = deployment.memory_bytes / MEMORY_SHARE / outputs;
        let per_block = usize::try_from(memory / u64::from(subpartitions)).unwrap_or(usize::MAX);
        Self {
            output,
            blocks: (0..subpartitions).map(|_| Block::default()).collect(),
            block_bytes: per_block.clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX),
        }
    }

    /// How many subpartitions there are; at least 1.
    pub(crate) fn subpartitions(&self) -> u32 {
        u32::try_from(self.blocks.len()).unwrap_or(u32::MAX)
    }

    /// Writes a record to a subpartition.
    #[inline]
    pub(crate) fn write<R: Record + ?Sized>(
        &mut self,
        subpartition: u32,
        record: &R,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let encode = |block: &mut Vec<u8>| record.write(block).map_err(TaskFailure::from);
        self.write_with(subpartition, encode, context)
    }

    /// Writes a key, which has this hash, and its value to the subpartition of the key.
    #[inline]
    pub(crate) fn write_keyed(
        &mut self,
        key: &[u8],
        hash: u64,
        value: &[u8],
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let encode = |block: &mut Vec<u8>| {
            write_entry(key, value, block);
            Ok(())
        };
        self.write_with(self.subpartition_of(hash), encode, context)
    }

    /// Writes what `encode` appends, as one record, to a subpartition.
    #[inline]
    fn write_with(
        &mut self,
        subpartition: u32,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), TaskFailure>,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let block = &mut self.blocks[subpartition as usize];
        let before = block.bytes.len();
        encode(&mut block.bytes)?;
        block.records += 1;
        if block.bytes.len() < self.block_bytes {
            return Ok(());
        }
        let record_bytes = block.bytes.len() - before;
        if record_bytes > RECORD_BYTES_MAX {
            return Err(too_long(record_bytes));
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

    /// Maps the hash of a key to a subpartition, by bits that a hash table of the consumer does not
    /// look at first; else all keys of a subpartition would crowd together in it.
    #[inline]
    fn subpartition_of(&self, hash: u64) -> u32 {
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

#[cold]
fn too_long(record_bytes: usize) -> TaskFailure {
    TaskFailure::unrecoverable(format!(
        "a record of {record_bytes} bytes is too long: tasks pass on records of at most \
         {RECORD_BYTES_MAX} bytes; leave it out or divide it, with filter or flat_map, before \
         records are grouped, joined, sorted or put together"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_context::TestContext;

    #[test]
    fn a_record_at_the_limit_fits_behind_others_and_a_longer_one_is_refused() {
        let mut context = TestContext::new(0);
        context.deployment.memory_bytes = 1 << 30;
        let mut writer = PartitionWriter::of(&context.deployment, 0);
        // The length of either takes some bytes more: 3 in front of the first, 4 of the others.
        let before = "x".repeat(BLOCK_BYTES_MAX - 4);
        let text = "y".repeat(RECORD_BYTES_MAX - 3);
        writer.write(0, &before[..], &mut context).unwrap();
        assert!(context.written.is_empty());
        writer.write(0, &text[..text.len() - 1], &mut context).unwrap();
        let (_, _, block) = &context.written[0];
        assert_eq!(block.len(), regrow_actors::task::BLOCK_BYTES_MAX - 1);
        let error = writer.write(0, &text[..], &mut context).unwrap_err().to_string();
        let expected = format!("a record of {} bytes is too long", RECORD_BYTES_MAX + 1);
        assert!(error.contains(&expected), "{error}");
        assert!(error.contains("at most 16711680 bytes"), "{error}");
        assert_eq!(context.written.len(), 1);
    }
}
