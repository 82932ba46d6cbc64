//! What a text source is divided into.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    vec::IntoIter,
};

use regrow_protocol::{Split, SplitId, decode, encode};
use serde::{Deserialize, Serialize};

/// Bytes of a split: small, so that there are far more splits than slots, and large enough that a
/// request for one costs nothing beside reading it.
const SPLIT_BYTES: u64 = 4 << 20;

/// Splits of one source at most; a larger input has larger splits.
const SPLITS_MAX: u64 = 1 << 16;

/// Files in one split at most; small files share one.
const FILES_PER_SPLIT_MAX: usize = 256;

/// One of so many bytes of a split is read for a sample of it.
const SAMPLE_SHARE: u64 = 64;

/// Bytes of a sample of a split at least, or all that it has; a sample that reads less costs as much.
const SAMPLE_BYTES_MIN: u64 = 64 << 10;

/// Bytes that are read at one place for a sample, or all that is there: some lines start in them.
const SAMPLE_RANGE_BYTES_MIN: u64 = 4 << 10;

/// The lines of a file that start in a range of bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileRange {
    pub(super) path: PathBuf,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// The ranges of a split, to be read in this order.
pub(super) fn ranges(split: &Split) -> Result<IntoIter<FileRange>, String> {
    decode::<Vec<FileRange>>(&split.payload)
        .map(Vec::into_iter)
        .map_err(|error| format!("split {} is none of a text source: {error}", split.id.0))
}

/// Lists a file, or the files of a directory, and divides them.
pub(super) fn discover(path: &Path) -> Result<Vec<Split>, String> {
    numbered(divided(path)?)
}

/// Lists what [`discover`] does, of each split a small part that is spread over its files.
pub(super) fn sample(path: &Path) -> Result<Vec<Split>, String> {
    numbered(divided(path)?.into_iter().map(sample_of).collect())
}

fn divided(path: &Path) -> Result<Vec<Vec<FileRange>>, String> {
    let files = list(path)?;
    let total = files.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
    Ok(divide(files, SPLIT_BYTES.max(total.div_ceil(SPLITS_MAX))))
}

fn sample_of(ranges: Vec<FileRange>) -> Vec<FileRange> {
    let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
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

fn numbered(splits: Vec<Vec<FileRange>>) -> Result<Vec<Split>, String> {
    splits
        .into_iter()
        .zip(0..)
        .map(|(ranges, id)| {
            let size_bytes = ranges.iter().map(|range| range.end - range.start).sum();
            let payload = encode(&ranges).map_err(|error| error.to_string())?;
            Ok(Split { id: SplitId(id), size_bytes, payload })
        })
        .collect()
}

/// The files to read with their sizes: `path` itself, or what is in it, sorted by name, without
/// hidden files (`.` or `_` in front) and directories.
fn list(path: &Path) -> Result<Vec<(PathBuf, u64)>, String> {
    let cannot = |path: &Path, error: io::Error| {
        format!(
            "cannot read the input {}: {error}; give a text file or a directory of text files",
            path.display()
        )
    };
    let metadata = fs::metadata(path).map_err(|error| cannot(path, error))?;
    if !metadata.is_dir() {
        return Ok(vec![(path.to_owned(), file_bytes(path, &metadata)?)]);
    }
    let mut files = Vec::new();
    let mut directories = 0;
    for entry in fs::read_dir(path).map_err(|error| cannot(path, error))? {
        let entry = entry.map_err(|error| cannot(path, error))?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".")
            || entry.file_name().as_encoded_bytes().starts_with(b"_");
        if hidden {
            continue;
        }
        let file = entry.path();
        let metadata = fs::metadata(&file).map_err(|error| cannot(&file, error))?;
        if metadata.is_dir() {
            directories += 1;
        } else {
            let bytes = file_bytes(&file, &metadata)?;
            files.push((file, bytes));
        }
    }
    if files.is_empty() && directories > 0 {
        return Err(format!(
            "the input {} holds no files, only directories ({directories}): name one that holds \
             files",
            path.display()
        ));
    }
    files.sort();
    Ok(files)
}

/// How long a file is. A pipe, a device or a file that the system makes up as it is read has no
/// length to divide by, and would count as empty.
fn file_bytes(path: &Path, metadata: &fs::Metadata) -> Result<u64, String> {
    let unknown = || {
        format!(
            "cannot read the input {}: it is no plain file whose length is known; copy what it \
             holds to a file",
            path.display()
        )
    };
    if !metadata.is_file() {
        return Err(unknown());
    }
    if metadata.len() > 0 {
        return Ok(metadata.len());
    }
    let mut byte = [0];
    match File::open(path).and_then(|mut file| file.read(&mut byte)) {
        Ok(0) => Ok(0),
        Ok(_) => Err(unknown()),
        Err(error) => Err(format!("cannot read the input {}: {error}", path.display())),
    }
}

/// Cuts files into ranges of about `split_bytes`, and puts small ones together.
fn divide(files: Vec<(PathBuf, u64)>, split_bytes: u64) -> Vec<Vec<FileRange>> {
    let mut splits = Vec::new();
    let mut current = Vec::new();
    let mut current_bytes = 0;
    for (path, bytes) in files {
        let mut start = 0;
        while start < bytes {
            let end = bytes.min(start + (split_bytes - current_bytes));
            current_bytes += end - start;
            current.push(FileRange { path: path.clone(), start, end });
            start = end;
            if current_bytes >= split_bytes || current.len() >= FILES_PER_SPLIT_MAX {
                splits.push(std::mem::take(&mut current));
                current_bytes = 0;
            }
        }
    }
    if !current.is_empty() {
        splits.push(current);
    }
    splits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn splits_cover_every_byte_once_in_order(
            sizes in proptest::collection::vec(0_u64..500, 0..40),
            split_bytes in 1_u64..300,
        ) {
            let files: Vec<_> =
                sizes.iter().enumerate().map(|(n, size)| (n.to_string().into(), *size)).collect();
            let splits = divide(files.clone(), split_bytes);
            let mut expected = files.into_iter().filter(|(_, size)| *size > 0);
            let mut current: Option<(PathBuf, u64, u64)> = None;
            for range in splits.iter().flatten() {
                let (path, position, size) = match current.take() {
                    Some(open) => open,
                    None => expected.next().map(|(path, size)| (path, 0, size)).unwrap(),
                };
                prop_assert_eq!((&range.path, range.start), (&path, position));
                if range.end < size {
                    current = Some((path, range.end, size));
                }
            }
            prop_assert!(current.is_none() && expected.next().is_none());
            let bytes = |split: &Vec<FileRange>| -> u64 { split.iter().map(|r| r.end - r.start).sum() };
            prop_assert!(splits.iter().all(|split| (1..=split_bytes).contains(&bytes(split))));
        }

        #[test]
        fn a_sample_is_a_small_part_of_each_split_from_several_places(
            sizes in proptest::collection::vec(1_u64..6_000_000, 1..300),
        ) {
            let files = sizes.iter().enumerate().map(|(n, size)| (n.to_string().into(), *size));
            for split in divide(files.collect(), SPLIT_BYTES) {
                let whole: u64 = split.iter().map(|range| range.end - range.start).sum();
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
    fn a_directory_is_read_in_order_without_hidden_files() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b", "a", ".hidden", "_SUCCESS"] {
            fs::write(directory.path().join(name), "text\n").unwrap();
        }
        let splits = discover(directory.path()).unwrap();
        let read: Vec<_> = ranges(&splits[0]).unwrap().map(|range| range.path).collect();
        assert_eq!(read, ["a", "b"].map(|name| directory.path().join(name)));
        assert_eq!(splits.len(), 1);
        assert_eq!(splits[0].size_bytes, 10);
    }

    #[test]
    fn p4_what_has_no_known_length_is_not_read_as_empty() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let _bound = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in ["/dev/zero", "/proc/self/status"].map(Path::new) {
            let error = discover(path).unwrap_err();
            assert!(error.contains("length"), "{error}");
        }
        assert!(discover(directory.path()).unwrap_err().contains("socket"));
        fs::remove_file(&socket).unwrap();
        fs::write(directory.path().join("empty"), "").unwrap();
        assert_eq!(discover(directory.path()).unwrap(), []);
    }

    #[test]
    fn a_missing_input_is_named() {
        let error = discover(Path::new("/no/such/input")).unwrap_err();
        assert!(error.contains("/no/such/input"), "{error}");
    }
}
