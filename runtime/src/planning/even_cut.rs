//! Cutting a row of subpartitions into ranges of even size.

use regrow_protocol::SubpartitionRange;

/// Cuts subpartitions of these `bytes` into `parts` consecutive ranges that cover all of them.
///
/// The largest range is as small as it can be; within that, each range is as near as it can be to
/// an even share of what is left. Each has at least one subpartition while there are enough; ranges
/// beyond are empty. Takes O(subpartitions * 64 + parts).
pub(super) fn cut(bytes: &[u64], parts: u32) -> Vec<SubpartitionRange> {
    let row = Row::new(bytes);
    let used = row.len().min(parts);
    let after = row.parts_needed(row.least_maximum(used));
    let mut ranges = Vec::with_capacity(parts as usize);
    let mut start = 0;
    for parts_left in (1..=used).rev() {
        let end = row.end_of_range(start, parts_left, &after);
        ranges.push(SubpartitionRange { start, end });
        start = end;
    }
    ranges.resize(parts as usize, SubpartitionRange { start, end: start });
    ranges
}

/// How a row of subpartitions must be cut from each place on, for a largest range.
struct PartsNeeded {
    largest: u128,
    /// For each subpartition, how many ranges the row from it on needs; 0 behind the last.
    counts: Vec<u32>,
}

/// Subpartitions in a row, as prefix sums of their weights.
struct Row {
    sums: Vec<u128>,
}

impl Row {
    /// A subpartition weighs its bytes and one more: reading an empty one is not free, and so a row
    /// of unmeasured ones is cut by their number.
    fn new(bytes: &[u64]) -> Self {
        let mut sums = Vec::with_capacity(bytes.len() + 1);
        let mut sum = 0_u128;
        sums.push(sum);
        for &bytes in bytes {
            sum += u128::from(bytes) + 1;
            sums.push(sum);
        }
        Self { sums }
    }

    fn len(&self) -> u32 {
        u32::try_from(self.sums.len() - 1).unwrap_or(u32::MAX)
    }

    fn weight(&self, start: u32, end: u32) -> u128 {
        self.sums[end as usize] - self.sums[start as usize]
    }

    /// The least weight that no range need exceed when there are `parts`.
    fn least_maximum(&self, parts: u32) -> u128 {
        let heaviest = (0..self.len()).map(|index| self.weight(index, index + 1)).max();
        let (mut low, mut high) = (heaviest.unwrap_or(0), self.weight(0, self.len()));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.fits(parts, middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        high
    }

    /// Whether `parts` ranges suffice if none weighs more than `largest`, which no single
    /// subpartition does.
    fn fits(&self, parts: u32, largest: u128) -> bool {
        let (mut used, mut start) = (1, 0);
        for end in 1..=self.len() {
            if self.weight(start, end) > largest {
                used += 1;
                start = end - 1;
            }
        }
        used <= parts
    }

    fn parts_needed(&self, largest: u128) -> PartsNeeded {
        let mut counts = vec![0; self.sums.len()];
        let mut end = self.len();
        for start in (0..self.len()).rev() {
            while self.weight(start, end) > largest {
                end -= 1;
            }
            counts[start as usize] = counts[end as usize] + 1;
        }
        PartsNeeded { largest, counts }
    }

    /// Where the range that begins at `start` ends, when it is the first of `parts_left`.
    fn end_of_range(&self, start: u32, parts_left: u32, after: &PartsNeeded) -> u32 {
        if parts_left == 1 {
            return self.len();
        }
        let even_share = self.weight(start, self.len()) / u128::from(parts_left);
        let last_end = self.len() - (parts_left - 1);
        let mut end = start + 1;
        while end < last_end {
            let must_grow = after.counts[end as usize] > parts_left - 1;
            let longer = self.weight(start, end + 1);
            let overshoots = longer.saturating_sub(even_share)
                > even_share.saturating_sub(self.weight(start, end));
            if longer > after.largest || (overshoots && !must_grow) {
                break;
            }
            end += 1;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lengths(bytes: &[u64], parts: u32) -> Vec<u32> {
        cut(bytes, parts).iter().map(|range| range.end - range.start).collect()
    }

    fn largest(bytes: &[u64], parts: u32) -> u64 {
        let sum = |range: &SubpartitionRange| {
            bytes[range.start as usize..range.end as usize].iter().map(|bytes| bytes + 1).sum()
        };
        cut(bytes, parts).iter().map(sum).max().unwrap_or(0)
    }

    /// The best that any cut can do, by trying them all.
    fn best(weights: &[u64], parts: u32) -> u64 {
        if parts == 1 {
            return weights.iter().sum();
        }
        (0..=weights.len())
            .map(|end| weights[..end].iter().sum::<u64>().max(best(&weights[end..], parts - 1)))
            .min()
            .unwrap_or(0)
    }

    #[test]
    fn equal_subpartitions_are_cut_by_number() {
        assert_eq!(lengths(&[0; 8], 4), [2, 2, 2, 2]);
        assert_eq!(lengths(&[70; 9], 3), [3, 3, 3]);
        assert_eq!(lengths(&[70; 5], 5), [1; 5]);
    }

    #[test]
    fn a_heavy_subpartition_is_alone() {
        assert_eq!(lengths(&[10, 10, 900, 10, 10, 10], 3), [2, 1, 3]);
    }

    #[test]
    fn each_part_has_one_subpartition_before_any_is_empty() {
        assert_eq!(lengths(&[900, 0, 0, 0], 4), [1, 1, 1, 1]);
        assert_eq!(lengths(&[5, 5], 4), [1, 1, 0, 0]);
        assert_eq!(lengths(&[], 3), [0, 0, 0]);
    }

    #[test]
    fn the_light_end_of_a_skewed_row_is_shared_out_too() {
        assert_eq!(lengths(&[1000, 100, 100, 100, 100, 100, 100], 4), [1, 2, 2, 2]);
    }

    #[test]
    fn the_greatest_sums_do_not_overflow() {
        assert_eq!(lengths(&[u64::MAX; 4], 2), [2, 2]);
    }

    proptest! {
        #[test]
        fn no_cut_has_a_smaller_largest_part(
            bytes in proptest::collection::vec(0_u64..50, 1..8), parts in 1_u32..5,
        ) {
            let weights: Vec<u64> = bytes.iter().map(|bytes| bytes + 1).collect();
            prop_assert_eq!(largest(&bytes, parts), best(&weights, parts));
        }

        #[test]
        fn parts_follow_each_other_and_cover_all(
            bytes in proptest::collection::vec(any::<u64>(), 0..200), parts in 1_u32..300,
        ) {
            let ranges = cut(&bytes, parts);
            prop_assert_eq!(ranges.len(), parts as usize);
            let mut start = 0;
            for range in &ranges {
                prop_assert_eq!(range.start, start);
                prop_assert!(range.end >= range.start);
                start = range.end;
            }
            prop_assert_eq!(start as usize, bytes.len());
            let filled = ranges.iter().filter(|range| range.end > range.start).count();
            prop_assert_eq!(filled, bytes.len().min(parts as usize));
        }
    }
}
