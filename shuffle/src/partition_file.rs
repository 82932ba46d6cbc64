//! A sealed partition file that is open for reading.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use regrow_protocol::{DataDirectoryId, PartitionId, SubpartitionRange};

use crate::{
    fetch_error::FetchError,
    footer::Footer,
    run_file::RunFile,
    segment::Segment,
    trailer::{TrailerError, read_footer},
};

/// A sealed partition file that is open for reading. It can be read on when it is released.
#[derive(Debug)]
pub(crate) struct PartitionFile {
    partition: PartitionId,
    path: PathBuf,
    file: File,
    footer: Footer,
}

impl PartitionFile {
    /// Where a partition lies in the data directory `directory` under `root`.
    pub(crate) fn path(root: &Path, directory: DataDirectoryId, partition: PartitionId) -> PathBuf {
        let run = partition.attempt.run;
        let name = RunFile::Partition(partition).to_string();
        root.join(directory.to_string()).join(run.to_string()).join(name)
    }

    /// Opens `partition` at `path`, and verifies the end of its file.
    pub(crate) fn open(path: PathBuf, partition: PartitionId) -> Result<Self, FetchError> {
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if is_gone(&error) => return Err(FetchError::Gone { partition, path }),
            Err(error) => return Err(fetch_error(partition, &path, error.into())),
        };
        match read_footer(&mut file, partition) {
            Ok((footer, _)) => Ok(Self { partition, path, file, footer }),
            Err(error) => Err(fetch_error(partition, &path, error)),
        }
    }

    /// The entries of the index for `range`, as they are stored. They are not verified.
    pub(crate) fn index(&mut self, range: SubpartitionRange) -> Result<Vec<u8>, FetchError> {
        let subpartitions = self.footer.subpartitions;
        if range.start > range.end || range.end > subpartitions {
            let partition = self.partition;
            return Err(FetchError::OutOfRange { partition, range, subpartitions });
        }
        self.read_index(range).map_err(|error| self.error(error.into()))
    }

    fn read_index(&mut self, range: SubpartitionRange) -> io::Result<Vec<u8>> {
        let Footer { regions, data_bytes, .. } = self.footer;
        // At most SUBPARTITIONS_MAX times REGIONS_MAX entries, and no longer than the file.
        let mut bytes = vec![0; index_bytes(range, regions)];
        let skipped = u64::from(range.start) * u64::from(regions) * Segment::BYTES as u64;
        self.file.seek(SeekFrom::Start(data_bytes + skipped))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Entries of the index for each subpartition.
    pub(crate) fn regions(&self) -> u32 {
        self.footer.regions
    }

    /// Bytes of all blocks.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.footer.data_bytes
    }

    /// Where it lies.
    pub(crate) fn place(&self) -> &Path {
        &self.path
    }

    /// The open file.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// The open file alone, and where it lies.
    pub(crate) fn into_file(self) -> (File, PathBuf) {
        (self.file, self.path)
    }

    /// Names the partition in an error.
    pub(crate) fn error(&self, error: TrailerError) -> FetchError {
        fetch_error(self.partition, &self.path, error)
    }
}

/// Bytes of the entries of an index for `range`.
pub(crate) fn index_bytes(range: SubpartitionRange, regions: u32) -> usize {
    range.end.saturating_sub(range.start) as usize * regions as usize * Segment::BYTES
}

/// Verifies the entries of an index for `range`; empty segments are left out.
pub(crate) fn decode_index(
    bytes: &[u8],
    range: SubpartitionRange,
    regions: u32,
    data_bytes: u64,
) -> Result<Vec<Segment>, TrailerError> {
    let (entries, _) = bytes.as_chunks::<{ Segment::BYTES }>();
    let mut segments = Vec::new();
    let mut data_left = data_bytes;
    for (position, entry) in (range.start * regions..).zip(entries) {
        let segment = Segment::decode(position, entry)
            .ok_or_else(|| TrailerError::damaged("an entry of its index has a wrong checksum"))?;
        let end = segment.offset.checked_add(segment.length);
        // Segments do not overlap, so their sum is limited by the data too.
        let rest = data_left.checked_sub(segment.length);
        let (Some(rest), true) = (rest, end.is_some_and(|end| end <= data_bytes)) else {
            return Err(TrailerError::damaged(
                "an entry of its index points outside of its blocks",
            ));
        };
        data_left = rest;
        if segment.length > 0 {
            segments.push(segment);
        }
    }
    Ok(segments)
}

/// Names the partition in an error.
pub(crate) fn fetch_error(partition: PartitionId, path: &Path, error: TrailerError) -> FetchError {
    let path = path.to_owned();
    match error {
        TrailerError::Damaged(reason) => FetchError::Corrupt { partition, path, reason },
        TrailerError::Unreadable(source) => FetchError::Unreadable { partition, path, source },
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
