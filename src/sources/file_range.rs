//! A part of a file, as a split names it.

use std::{path::PathBuf, vec::IntoIter};

use regrow_protocol::{Split, SplitId, decode, encode};
use serde::{Deserialize, Serialize};

use super::input_file::{FileStamp, InputFile, is_gzip};

/// The records of a file that start in a range of its bytes: of its content, if it is compressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRange {
    pub(super) path: PathBuf,
    pub(super) start: u64,
    /// `u64::MAX` where only reading tells how much there is.
    pub(super) end: u64,
    /// The file when it was listed; none in a listing of the first release.
    #[serde(default)]
    pub(super) stamp: Option<FileStamp>,
    /// Number of the line that begins at `start`, from 1, in a source that counts them; else 0.
    #[serde(default)]
    pub(super) first_line: u64,
}

impl FileRange {
    /// A part of `file`.
    pub(super) fn new(file: &InputFile, start: u64, end: u64, first_line: u64) -> Self {
        Self { path: file.path.clone(), start, end, stamp: Some(file.stamp), first_line }
    }

    /// All of `file`; a compressed one is read to wherever its content ends.
    pub(super) fn whole(file: &InputFile) -> Self {
        let end = if file.is_gzip() { u64::MAX } else { file.stamp.bytes };
        Self::new(file, 0, end, 1)
    }

    /// How much there is to read of the file.
    pub(super) fn bytes(&self) -> u64 {
        match (self.end, self.stamp) {
            (u64::MAX, Some(stamp)) => stamp.bytes,
            _ => self.end.saturating_sub(self.start),
        }
    }

    /// Whether the file is compressed.
    pub(super) fn is_gzip(&self) -> bool {
        is_gzip(&self.path)
    }
}

/// The ranges of a split, to be read in this order.
pub(super) fn ranges(split: &Split) -> Result<IntoIter<FileRange>, String> {
    decode::<Vec<FileRange>>(&split.payload)
        .map(Vec::into_iter)
        .map_err(|error| format!("split {} is none of files: {error}", split.id.0))
}

/// A split of each element of `splits`, numbered from 0.
pub(super) fn numbered(splits: Vec<Vec<FileRange>>) -> Result<Vec<Split>, String> {
    splits
        .into_iter()
        .zip(0..)
        .map(|(ranges, id)| {
            let size_bytes = ranges.iter().map(FileRange::bytes).sum();
            let payload = encode(&ranges).map_err(|error| error.to_string())?;
            Ok(Split { id: SplitId(id), size_bytes, payload })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_of_the_first_release_stay_readable() {
        #[derive(Serialize)]
        struct FirstRange {
            path: PathBuf,
            start: u64,
            end: u64,
        }
        let payload = encode(&[FirstRange { path: "/text".into(), start: 3, end: 9 }]).unwrap();
        let split = Split { id: SplitId(0), size_bytes: 6, payload };
        let expected =
            FileRange { path: "/text".into(), start: 3, end: 9, stamp: None, first_line: 0 };
        assert_eq!(ranges(&split).unwrap().collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn a_split_of_another_source_is_refused() {
        let split = Split { id: SplitId(7), size_bytes: 6, payload: vec![1, 2] };
        assert!(ranges(&split).unwrap_err().contains("split 7"));
    }
}
