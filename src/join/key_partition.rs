//! How keys are divided among files.

/// Files that a side is divided among at once.
pub(super) const PARTITIONS: usize = 16;

/// How often keys are divided at most: 16^5 files would hold 64 TB in pieces of 64 MB, so what is
/// still too large then has the same key, or hashes that are alike in all bits.
pub(super) const LEVELS_MAX: u32 = 5;

/// The file of a key: each level takes other bits of its hash, stirred, because all keys that came
/// to a task have some bits in common.
pub(super) fn partition_of(hash: u64, level: u32) -> usize {
    let mut mixed = hash ^ 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(level) + 1);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    usize::from((mixed >> 59).to_le_bytes()[0]) % PARTITIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_divide_what_the_level_before_left_together() {
        let together: Vec<u64> = (0..160_000).filter(|hash| partition_of(*hash, 0) == 3).collect();
        let mut counts = [0_usize; PARTITIONS];
        for hash in &together {
            counts[partition_of(*hash, 1)] += 1;
        }
        let even = together.len() / PARTITIONS;
        assert!(counts.iter().all(|count| (even / 2..2 * even).contains(count)), "{counts:?}");
    }
}
