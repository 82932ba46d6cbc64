//! Bytes that a stage writes and the next one verifies.
//!
//! A block is six numbers of 4 bytes, little-endian (producer's subtask, number of subpartitions,
//! subpartition, number of the block in it, number of blocks in it, bytes that follow), and bytes
//! that follow from these numbers.

use std::ops::Range;

use crate::split_mix::mix;

/// Bytes of a block without its header at most.
const BLOCK_BYTES: u64 = 64 << 10;

const HEADER_BYTES: usize = 24;

/// Subpartitions that an attempt may have: a payload of that size reaches each.
const SUBPARTITIONS_MAX: u64 = 1024;

/// Names one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    producer: u32,
    subpartitions: u32,
    subpartition: u32,
    index: u32,
    blocks: u32,
    bytes: u32,
}

impl BlockHeader {
    /// The blocks in which `producer` writes its `payload_bytes` to `subpartition`.
    pub(super) fn of_subpartition(
        producer: u32,
        subpartitions: u32,
        subpartition: u32,
        payload_bytes: u64,
    ) -> impl Iterator<Item = Self> {
        let share = share(payload_bytes, subpartitions, subpartition);
        let blocks = narrow(share.div_ceil(BLOCK_BYTES));
        (0..blocks).map(move |index| {
            let bytes = narrow((share - u64::from(index) * BLOCK_BYTES).min(BLOCK_BYTES));
            Self { producer, subpartitions, subpartition, index, blocks, bytes }
        })
    }

    /// Where the block belongs.
    pub(super) fn subpartition(self) -> u32 {
        self.subpartition
    }

    /// Puts the block into `block`.
    pub(super) fn fill(self, block: &mut Vec<u8>) {
        block.clear();
        for number in self.numbers() {
            block.extend_from_slice(&number.to_le_bytes());
        }
        let mut state =
            self.numbers().iter().fold(0, |state: u64, number| mix(state ^ u64::from(*number)));
        let length = HEADER_BYTES + self.bytes as usize;
        while block.len() < length {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            block.extend_from_slice(&mix(state).to_le_bytes());
        }
        block.truncate(length);
    }

    fn numbers(self) -> [u32; 6] {
        [self.producer, self.subpartitions, self.subpartition, self.index, self.blocks, self.bytes]
    }

    fn read(block: &[u8]) -> Option<Self> {
        let (header, _) = block.split_at_checked(HEADER_BYTES)?;
        let mut numbers = [0; 6];
        for (number, bytes) in numbers.iter_mut().zip(header.chunks_exact(4)) {
            *number = u32::from_le_bytes(*bytes.first_chunk()?);
        }
        let [producer, subpartitions, subpartition, index, blocks, bytes] = numbers;
        Some(Self { producer, subpartitions, subpartition, index, blocks, bytes })
    }
}

/// Checks that an attempt gets every byte of its producers' payload once, in order.
pub(super) struct Verifier {
    producers: Vec<u32>,
    subpartitions: Range<u32>,
    payload_bytes: u64,
    last: Option<BlockHeader>,
    complete: u64,
    expected: Vec<u8>,
}

impl Verifier {
    /// Verifies what `producers`, ascending, wrote to some `subpartitions`.
    pub(super) fn new(producers: Vec<u32>, subpartitions: Range<u32>, payload_bytes: u64) -> Self {
        Self {
            producers,
            subpartitions,
            payload_bytes,
            last: None,
            complete: 0,
            expected: Vec::new(),
        }
    }

    /// Verifies the next block.
    pub(super) fn block(&mut self, block: &[u8]) -> Result<(), String> {
        let header = BlockHeader::read(block)
            .ok_or_else(|| format!("a block of {} bytes has no header", block.len()))?;
        let error = |what: &str| Err(format!("{what}: {header:?} after {:?}", self.last));
        if !self.producers.contains(&header.producer)
            || !self.subpartitions.contains(&header.subpartition)
        {
            return error("a block is none of this task's");
        }
        let follows = match &self.last {
            Some(last) if last.index + 1 < last.blocks => {
                *last == BlockHeader { index: last.index, bytes: last.bytes, ..header }
                    && header.index == last.index + 1
            }
            Some(last) => {
                let place = |block: &BlockHeader| (block.producer, block.subpartition);
                header.index == 0 && place(last) < place(&header)
            }
            None => header.index == 0,
        };
        if !follows {
            return error("a block is missing, repeated or out of order");
        }
        let mut planned = BlockHeader::of_subpartition(
            header.producer,
            header.subpartitions,
            header.subpartition,
            self.payload_bytes,
        );
        if planned.nth(header.index as usize) != Some(header) {
            return error("a block has the wrong size");
        }
        header.fill(&mut self.expected);
        if self.expected != block {
            return error("a block has the wrong content");
        }
        self.complete += u64::from(header.index + 1 == header.blocks);
        self.last = Some(header);
        Ok(())
    }

    /// Verifies that nothing is missing.
    pub(super) fn finish(&self) -> Result<(), String> {
        let reached = match &self.last {
            Some(last) if last.index + 1 < last.blocks => {
                return Err(format!("the input ends in the middle of a subpartition: {last:?}"));
            }
            Some(last) => narrow(self.payload_bytes.min(u64::from(last.subpartitions))),
            // Nobody told how many subpartitions there are; a large payload reaches all.
            None if self.payload_bytes >= SUBPARTITIONS_MAX => self.subpartitions.end,
            None => 0,
        };
        let per_producer =
            self.subpartitions.end.min(reached).saturating_sub(self.subpartitions.start);
        let expected = self.producers.len() as u64 * u64::from(per_producer);
        if self.complete == expected {
            return Ok(());
        }
        Err(format!(
            "{} of {expected} subpartitions arrived from producers {:?}",
            self.complete, self.producers
        ))
    }
}

/// How much of `bytes` goes to a subpartition: equal shares, the first ones one byte more.
fn share(bytes: u64, subpartitions: u32, subpartition: u32) -> u64 {
    let subpartitions = u64::from(subpartitions.max(1));
    bytes / subpartitions + u64::from(u64::from(subpartition) < bytes % subpartitions)
}

/// Block counts and sizes are far below 2^32: a payload ends at 256 TiB.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks(producers: u32, subpartitions: u32, range: Range<u32>, bytes: u64) -> Vec<Vec<u8>> {
        let filled = |header: BlockHeader| {
            let mut block = Vec::new();
            header.fill(&mut block);
            block
        };
        let of_producer = |producer| {
            range.clone().flat_map(move |subpartition| {
                BlockHeader::of_subpartition(producer, subpartitions, subpartition, bytes)
            })
        };
        (0..producers).flat_map(of_producer).map(filled).collect()
    }

    fn verify(
        producers: u32,
        range: Range<u32>,
        bytes: u64,
        blocks: &[Vec<u8>],
    ) -> Result<(), String> {
        let mut verifier = Verifier::new((0..producers).collect(), range, bytes);
        blocks.iter().try_for_each(|block| verifier.block(block))?;
        verifier.finish()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_whole_payload_is_accepted_and_any_loss_is_seen(
            producers in 1_u32..4,
            subpartitions in 1_u32..6,
            bytes in 1024_u64..200_000,
            damage in 0_usize..3,
            place: prop::sample::Index,
        ) {
            let range = 0..subpartitions.div_ceil(2);
            let mut blocks = blocks(producers, subpartitions, range.clone(), bytes);
            prop_assert_eq!(verify(producers, range.clone(), bytes, &blocks), Ok(()));
            let index = place.index(blocks.len());
            match damage {
                0 => { blocks.remove(index); }
                1 => { let twice = blocks[index].clone(); blocks.insert(index, twice); }
                _ => { let last = blocks[index].len() - 1; blocks[index][last] ^= 1; }
            }
            prop_assert!(verify(producers, range, bytes, &blocks).is_err());
        }

        #[test]
        fn shares_add_up(bytes in 0_u64..1_000_000, subpartitions in 1_u32..200) {
            let sum: u64 = (0..subpartitions).map(|n| share(bytes, subpartitions, n)).sum();
            prop_assert_eq!(sum, bytes);
        }
    }

    #[test]
    fn without_payload_nothing_is_expected() {
        assert_eq!(verify(3, 0..4, 0, &[]), Ok(()));
    }
}
