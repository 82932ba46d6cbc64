//! Batches of events, as the log stores them.
//!
//! ```text
//! offset  bytes  content
//!      0      2  version of the format, big-endian; 1 or 2
//!      2      .  MessagePack map with named fields: epoch, first, events; in version 2, finishes
//! ```
//! In version 1 the finishes are among `events`. In version 2 they are columns of a table, which
//! says where they stand among `events`: 10 to 100 bytes each instead of 700, and a tenth of the
//! time. A batch without a finish is of version 1.
//!
//! The version grows when an older program could no longer read what is written. A field or event
//! that is only added does not change it. Length and checksum are the store's.

mod column;
mod finish_table;

use regrow_protocol::{DecodeError, EncodeError, Epoch, decode, encode};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::finish_table::{FinishTable, FinishTableWriter};
use crate::{JobEvent, Lsn};

/// The version of a batch without finishes.
const PLAIN: u16 = 1;

/// The version of a batch with a table of finishes, and the newest that this program reads.
const TABULAR: u16 = 2;

/// Events that are stored together, by one life of a `JobMaster`.
#[derive(Clone, Debug, PartialEq)]
pub struct EventBatch {
    /// Version of the format that it was written in.
    pub version: u16,
    /// Who wrote it.
    pub epoch: Epoch,
    /// Number of events of the run before its own.
    pub first: Lsn,
    /// What happened, in order.
    pub events: Vec<JobEvent>,
}

/// A batch cannot be read: the log is damaged there, or a newer program wrote it.
#[derive(Debug, Error)]
pub enum BatchError {
    /// There are not even the bytes of a version.
    #[error("a batch of {length} bytes has no version")]
    TooShort {
        /// How many bytes there are.
        length: usize,
    },
    /// Another program must read it.
    #[error(
        "a batch has version {found}, and this program reads versions 1 to {newest}: \
         use the program that wrote it, or a newer one"
    )]
    UnknownVersion {
        /// The version of the batch.
        found: u16,
        /// The newest that this program reads.
        newest: u16,
    },
    /// The version is known, and what follows it is damaged.
    #[error("a batch of version {version} cannot be decoded")]
    Malformed {
        /// The version of the batch.
        version: u16,
        /// What the decoder said.
        source: DecodeError,
    },
    /// The parts of the batch do not fit together.
    #[error("a batch of version {version} has a table of finishes that contradicts itself")]
    Contradictory {
        /// The version of the batch.
        version: u16,
    },
}

#[derive(Serialize)]
struct BodyRef<'a> {
    epoch: Epoch,
    first: Lsn,
    events: Vec<&'a JobEvent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finishes: Option<FinishTable>,
}

#[derive(Deserialize)]
struct Body {
    epoch: Epoch,
    first: Lsn,
    events: Vec<JobEvent>,
    #[serde(default)]
    finishes: Option<FinishTable>,
}

/// Encodes `events`, recorded in `epoch` after `first` events of the run.
///
/// # Errors
/// When an event does not serialize; a defect of its type.
pub fn encode_batch<'a>(
    epoch: Epoch,
    first: Lsn,
    events: impl IntoIterator<Item = &'a JobEvent>,
) -> Result<Vec<u8>, EncodeError> {
    let (events, finishes) = FinishTableWriter::split(events);
    let version = if finishes.is_some() { TABULAR } else { PLAIN };
    let body = encode(&BodyRef { epoch, first, events, finishes })?;
    let mut bytes = Vec::with_capacity(2 + body.len());
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// Decodes a batch that fills `bytes`; never panics on any input.
///
/// # Errors
/// When the batch is damaged or of an unknown version; the error says which.
pub fn decode_batch(bytes: &[u8]) -> Result<EventBatch, BatchError> {
    let Some((version, body)) = bytes.split_first_chunk::<2>() else {
        return Err(BatchError::TooShort { length: bytes.len() });
    };
    let version = u16::from_be_bytes(*version);
    if !(PLAIN..=TABULAR).contains(&version) {
        return Err(BatchError::UnknownVersion { found: version, newest: TABULAR });
    }
    let Body { epoch, first, events, finishes } =
        decode(body).map_err(|source| BatchError::Malformed { version, source })?;
    let events = match finishes {
        Some(table) => table.join(events).map_err(|_| BatchError::Contradictory { version })?,
        None => events,
    };
    Ok(EventBatch { version, epoch, first, events })
}

#[cfg(test)]
mod tests;
