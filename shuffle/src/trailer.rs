//! Reads the trailers of sealed partition files.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use regrow_protocol::{FinishRecord, PartitionId, decode};

use crate::footer::Footer;

/// What stands behind the blocks of a partition file, with its checksums verified.
#[derive(Debug)]
pub(crate) struct Trailer {
    /// Length of the whole file.
    pub(crate) file_bytes: u64,
    /// CRC32C of the index.
    pub(crate) index_checksum: u32,
    /// The finish record, if it is there.
    pub(crate) record: Option<FinishRecord>,
}

/// Why a trailer cannot be read.
#[derive(Debug)]
pub(crate) enum TrailerError {
    /// The system refuses to read it.
    Unreadable(io::Error),
    /// It is not as it was written.
    Damaged(String),
}

impl TrailerError {
    /// It is not as it was written.
    pub(crate) fn damaged(reason: &str) -> Self {
        Self::Damaged(reason.to_owned())
    }
}

impl From<io::Error> for TrailerError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Self::Damaged("it ends too early".to_owned());
        }
        Self::Unreadable(error)
    }
}

impl Trailer {
    /// Reads the trailer of the file at `path`, which should be `partition`.
    pub(crate) fn read(path: &Path, partition: PartitionId) -> Result<Self, TrailerError> {
        let mut file = File::open(path)?;
        let (footer, file_bytes) = read_footer(&mut file, partition)?;
        // The footer's lengths were compared with the file's.
        let mut bytes = vec![0; footer.index_bytes() + footer.record_bytes as usize];
        file.seek(SeekFrom::Start(footer.data_bytes))?;
        file.read_exact(&mut bytes)?;
        let (index, record) = bytes.split_at(footer.index_bytes());
        if crc32c::crc32c(index) != footer.index_checksum {
            return Err(TrailerError::Damaged("its index has a wrong checksum".to_owned()));
        }
        let record = read_record(&footer, record).map_err(TrailerError::Damaged)?;
        Ok(Self { file_bytes, index_checksum: footer.index_checksum, record })
    }
}

/// Reads the footer of a file that should be `partition`, and tells the length of the file.
pub(crate) fn read_footer(
    file: &mut File,
    partition: PartitionId,
) -> Result<(Footer, u64), TrailerError> {
    let file_bytes = file.metadata()?.len();
    let Some(start) = file_bytes.checked_sub(Footer::BYTES as u64) else {
        return Err(TrailerError::Damaged(format!("it has {file_bytes} bytes only")));
    };
    let mut bytes = [0; Footer::BYTES];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut bytes)?;
    let footer = Footer::decode(&bytes, file_bytes, partition).map_err(TrailerError::Damaged)?;
    Ok((footer, file_bytes))
}

fn read_record(footer: &Footer, bytes: &[u8]) -> Result<Option<FinishRecord>, String> {
    if bytes.is_empty() {
        return Ok(None);
    }
    if crc32c::crc32c(bytes) != footer.record_checksum {
        return Err("its finish record has a wrong checksum".to_owned());
    }
    let record: FinishRecord = decode(bytes)
        .map_err(|error| format!("its finish record is of another version: {error}"))?;
    Ok(Some(record))
}
