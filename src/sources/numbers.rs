//! Numbers in a row, out of nothing: for jobs that make their own data, or search among numbers.

use std::ops::Range;

use super::source::{Source, SourceError, SourceSplit, SplitProgress, SplitReader};
use crate::{chain::Chain, data_set::DataSet, environment::Environment, operators::Emitter};

/// Numbers of a split at most: enough that a request for a split costs nothing beside them.
const SPLIT_NUMBERS_MAX: u64 = 1 << 20;

/// Splits at least, if there are as many numbers: work on a number may take long.
const SPLITS_MIN: u64 = 256;

/// Splits at most; more numbers make larger splits.
const SPLITS_MAX: u64 = 1 << 16;

/// What a number counts for when tasks are planned.
const NUMBER_BYTES: u64 = size_of::<u64>() as u64;

/// Numbers in a row.
struct Numbers {
    range: Range<u64>,
}

impl Environment {
    /// Each number of `range` once.
    ///
    /// How many tasks make them is decided as if each were 8 bytes of input; where work on one takes
    /// long, say how many with [`with_parallelism`](DataSet::with_parallelism).
    pub fn numbers(&self, range: Range<u64>) -> DataSet<'_, impl Chain<Item = u64>> {
        self.read_from(Numbers { range })
    }
}

impl Numbers {
    fn splits(&self, numbers_per_split: u64) -> Vec<SourceSplit<Range<u64>>> {
        let Range { mut start, end } = self.range;
        let mut splits = Vec::new();
        while start < end {
            let next = end.min(start.saturating_add(numbers_per_split));
            let size_bytes = (next - start).saturating_mul(NUMBER_BYTES);
            splits.push(SourceSplit { split: start..next, size_bytes });
            start = next;
        }
        splits
    }
}

impl Source for Numbers {
    type Split = Range<u64>;
    type Reader = NumberReader;

    fn discover(&self) -> Result<Vec<SourceSplit<Range<u64>>>, String> {
        let count = self.range.end.saturating_sub(self.range.start);
        let small = (count / SPLITS_MIN).clamp(1, SPLIT_NUMBERS_MAX);
        Ok(self.splits(small.max(count.div_ceil(SPLITS_MAX))))
    }

    fn sample(&self) -> Result<Vec<SourceSplit<Range<u64>>>, String> {
        let mut splits = self.discover()?;
        for SourceSplit { split, size_bytes } in &mut splits {
            let numbers = (split.end - split.start).div_ceil(64);
            split.end = split.start + numbers;
            *size_bytes = numbers.saturating_mul(NUMBER_BYTES);
        }
        Ok(splits)
    }

    fn open(&self, split: Range<u64>) -> Result<NumberReader, SourceError> {
        Ok(NumberReader(split))
    }
}

/// Counts through a split.
struct NumberReader(Range<u64>);

impl SplitReader for NumberReader {
    type Item = u64;

    fn read(&mut self, out: &mut Emitter<u64>) -> Result<SplitProgress, SourceError> {
        while !out.is_full() {
            let Some(number) = self.0.next() else { return Ok(SplitProgress::End) };
            out.emit(number);
        }
        Ok(SplitProgress::More)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_job::TestJob;

    fn splits(range: Range<u64>) -> Vec<Range<u64>> {
        let splits = Numbers { range }.discover().unwrap();
        splits.into_iter().map(|split| split.split).collect()
    }

    #[test]
    fn each_number_of_the_range_comes_once() {
        let job = TestJob::new(1 << 20, |env| env.numbers(3..5_000).write_csv("/out"));
        let mut found: Vec<u64> =
            job.lines().unwrap().iter().map(|line| line.parse().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, (3..5_000).collect::<Vec<_>>());
    }

    #[test]
    fn there_are_many_splits_and_never_too_many() {
        #[expect(clippy::reversed_empty_ranges, reason = "an empty range may be written so")]
        let empty = [5..5, 9..3];
        assert!(empty.into_iter().all(|range| splits(range).is_empty()));
        assert_eq!(splits(0..100).len(), 100);
        assert_eq!(splits(0..1 << 30).len(), 1024);
        let all = splits(1..u64::MAX);
        assert_eq!(all.len() as u64, SPLITS_MAX);
        assert_eq!((all[0].start, all[all.len() - 1].end), (1, u64::MAX));
        assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn a_sample_is_a_small_part_of_each_split() {
        let sample = Numbers { range: 0..1 << 20 }.sample().unwrap();
        assert_eq!(sample.len(), 256);
        assert!(sample.iter().all(|split| split.split.end - split.split.start == 64));
    }
}
