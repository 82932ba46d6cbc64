//! How files are divided into splits.

use super::{file_range::FileRange, input_file::InputFile};

/// Bytes of a split: small, so that there are far more splits than slots, and large enough that a
/// request for one costs nothing beside reading it.
pub(super) const SPLIT_BYTES: u64 = 4 << 20;

/// Splits of one source at most; a larger input has larger splits.
pub(super) const SPLITS_MAX: u64 = 1 << 16;

/// Files in one split at most; small files share one.
const FILES_PER_SPLIT_MAX: usize = 256;

/// One of so many bytes of a split is read for a sample of it.
const SAMPLE_SHARE: u64 = 64;

/// Bytes of a sample of a split at least, or all that it has; a sample that reads less costs as much.
const SAMPLE_BYTES_MIN: u64 = 64 << 10;

/// Bytes that are read at one place for a sample, or all that is there: some records start in them.
const SAMPLE_RANGE_BYTES_MIN: u64 = 4 << 10;

/// Finds where a file may be cut.
pub(crate) trait Borders {
    /// Where a range of `file` that begins at `start` ends, if it is to end at about `wanted`, which
    /// is beyond `start` and before the end of the file. It is beyond `start`, too.
    ///
    /// Asked for one file after the other, and within a file from its beginning on.
    fn border(&mut self, file: &InputFile, start: u64, wanted: u64) -> Result<Border, String>;
}

/// A place at which a file may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Border {
    /// The first byte of what comes next.
    pub(super) offset: u64,
    /// Number of the line that begins there, from 1, in a source that counts them; else 0.
    pub(super) line: u64,
}

/// Divides files into splits of at least [`SPLIT_BYTES`], except for the last one.
pub(super) fn divide(
    files: &[InputFile],
    borders: &mut impl Borders,
) -> Result<Vec<Vec<FileRange>>, String> {
    let total = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.stamp.bytes));
    divide_by(files, SPLIT_BYTES.max(total.div_ceil(SPLITS_MAX)), borders)
}

fn divide_by(
    files: &[InputFile],
    split_bytes: u64,
    borders: &mut impl Borders,
) -> Result<Vec<Vec<FileRange>>, String> {
    let mut splits = Splits { split_bytes, full: Vec::new(), open: Vec::new(), open_bytes: 0 };
    for file in files {
        let bytes = file.stamp.bytes;
        if file.is_gzip() {
            splits.add_whole(FileRange::whole(file));
            continue;
        }
        let mut start = Border { offset: 0, line: 1 };
        while start.offset < bytes {
            let wanted = start.offset.saturating_add(splits.room());
            let end = if wanted < bytes {
                borders.border(file, start.offset, wanted)?
            } else {
                Border { offset: bytes, line: 0 }
            };
            splits.add(FileRange::new(file, start.offset, end.offset, start.line));
            start = end;
        }
    }
    Ok(splits.finish())
}

struct Splits {
    split_bytes: u64,
    full: Vec<Vec<FileRange>>,
    open: Vec<FileRange>,
    open_bytes: u64,
}

impl Splits {
    /// Bytes that the open split wants; at least 1.
    fn room(&self) -> u64 {
        self.split_bytes.saturating_sub(self.open_bytes).max(1)
    }

    fn add(&mut self, range: FileRange) {
        self.open_bytes = self.open_bytes.saturating_add(range.bytes());
        self.open.push(range);
        if self.open_bytes >= self.split_bytes || self.open.len() >= FILES_PER_SPLIT_MAX {
            self.close();
        }
    }

    /// Adds what cannot be cut, to a split of its own unless there is room.
    fn add_whole(&mut self, range: FileRange) {
        if range.bytes() > self.room() {
            self.close();
        }
        self.add(range);
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.full.push(std::mem::take(&mut self.open));
            self.open_bytes = 0;
        }
    }

    fn finish(mut self) -> Vec<Vec<FileRange>> {
        self.close();
        self.full
    }
}

/// A small part of a split, from several of its files.
pub(super) fn sample_of(ranges: Vec<FileRange>) -> Vec<FileRange> {
    let bytes: u64 = ranges.iter().map(FileRange::bytes).sum();
    let wanted = (bytes / SAMPLE_SHARE).max(SAMPLE_BYTES_MIN);
    let places = (wanted / SAMPLE_RANGE_BYTES_MIN).clamp(1, ranges.len() as u64);
    let step = usize::try_from((ranges.len() as u64).div_ceil(places)).unwrap_or(usize::MAX);
    let range_bytes = wanted / (ranges.len().div_ceil(step) as u64);
    ranges
        .into_iter()
        .step_by(step)
        .map(|range| FileRange { end: range.end.min(range.start + range_bytes), ..range })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sources::input_file::FileStamp;

    /// Cuts at any multiple of a number.
    struct Multiples(u64);

    impl Borders for Multiples {
        fn border(&mut self, _: &InputFile, _: u64, wanted: u64) -> Result<Border, String> {
            Ok(Border { offset: wanted.next_multiple_of(self.0), line: wanted })
        }
    }

    fn files(sizes: &[u64], suffix: &str) -> Vec<InputFile> {
        let stamp = |bytes| FileStamp { bytes, modified_s: 0, modified_ns: 0 };
        let file =
            |(n, size)| InputFile { path: format!("{n}{suffix}").into(), stamp: stamp(size) };
        sizes.iter().copied().enumerate().map(file).collect()
    }

    proptest! {
        #[test]
        fn splits_cover_every_byte_once_in_order(
            sizes in proptest::collection::vec(0_u64..500, 0..40),
            split_bytes in 1_u64..300,
            unit in 1_u64..20,
        ) {
            let sizes: Vec<u64> = sizes.iter().map(|size| size * unit).collect();
            let files = files(&sizes, "");
            let splits = divide_by(&files, split_bytes, &mut Multiples(unit)).unwrap();
            let mut expected = files.into_iter().filter(|file| file.stamp.bytes > 0);
            let mut current: Option<(InputFile, u64)> = None;
            for range in splits.iter().flatten() {
                let (file, position) =
                    current.take().unwrap_or_else(|| (expected.next().unwrap(), 0));
                prop_assert_eq!((&range.path, range.start), (&file.path, position));
                prop_assert!(range.end > range.start && range.start % unit == 0);
                if range.end < file.stamp.bytes {
                    current = Some((file, range.end));
                }
            }
            prop_assert!(current.is_none() && expected.next().is_none());
            let bytes = |split: &Vec<FileRange>| -> u64 { split.iter().map(FileRange::bytes).sum() };
            prop_assert!(splits.iter().all(|split| (1..split_bytes + unit).contains(&bytes(split))));
        }

        #[test]
        fn a_sample_is_a_small_part_of_each_split_from_several_places(
            sizes in proptest::collection::vec(1_u64..6_000_000, 1..300),
            suffix in "|[.]gz",
        ) {
            for split in divide(&files(&sizes, &suffix), &mut Multiples(1)).unwrap() {
                let whole: u64 = split.iter().map(FileRange::bytes).sum();
                let sample = sample_of(split.clone());
                let bytes: u64 = sample.iter().map(|range| range.end - range.start).sum();
                prop_assert!(bytes > 0 && bytes <= SAMPLE_BYTES_MIN.max(whole / SAMPLE_SHARE));
                prop_assert!(sample.len() >= split.len().min(8));
                for range in sample {
                    let within = |part: &FileRange| {
                        part.path == range.path && part.start <= range.start && range.end <= part.end
                    };
                    prop_assert!(range.start < range.end && split.iter().any(within));
                }
            }
        }
    }

    #[test]
    fn a_compressed_file_is_read_whole_and_small_ones_share_a_split() {
        let sizes = [10, 20, 100, 5, 5];
        let splits = divide_by(&files(&sizes, ".gz"), 50, &mut Multiples(1)).unwrap();
        let names = |split: &Vec<FileRange>| {
            split.iter().map(|range| range.path.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        let found: Vec<String> = splits.iter().map(names).collect();
        assert_eq!(found, ["0.gz 1.gz", "2.gz", "3.gz 4.gz"]);
        assert!(splits.iter().flatten().all(|range| (range.start, range.end) == (0, u64::MAX)));
    }
}
