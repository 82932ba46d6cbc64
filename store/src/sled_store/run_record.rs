//! What is stored of a run beside its batches: a framed document with the run id as key.
//!
//! Integers are little-endian.
//! ```text
//! offset  bytes  meaning
//!      0      8  term of the highest claim
//!      8      4  life of it
//!     12      8  sequence number of the first batch that was not removed
//! ```

use regrow_protocol::{Epoch, RunId};

use super::Tree;
use crate::{StoreError, document};

const TABLE: &str = Tree::Runs.name();

/// The record of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunRecord {
    /// The highest epoch that was claimed.
    pub(super) highest: Option<Epoch>,
    /// Sequence number of the first batch.
    pub(super) start: u64,
}

impl RunRecord {
    pub(super) fn encode(self, run: RunId) -> Result<Vec<u8>, StoreError> {
        let epoch = self.highest.unwrap_or_default();
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&epoch.term.to_le_bytes());
        bytes.extend_from_slice(&epoch.life.to_le_bytes());
        bytes.extend_from_slice(&self.start.to_le_bytes());
        document::encode(TABLE, &run.bits().to_be_bytes(), 0, &bytes)
    }

    /// Reads a record; an error says what is wrong with it.
    pub(super) fn decode(run: RunId, bytes: &[u8]) -> Result<Self, String> {
        let document = document::decode(TABLE, &run.bits().to_be_bytes(), bytes)
            .map_err(|flaw| flaw.to_string())?;
        let Some(bytes) = document.bytes.as_array::<20>() else {
            return Err(format!("it has {} bytes, 20 are expected", document.bytes.len()));
        };
        let (term, rest) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let (life, start) = rest.split_first_chunk().unwrap_or((&[0; 4], &[]));
        let start = start.first_chunk().copied().unwrap_or_default();
        let epoch = Epoch::new(u64::from_le_bytes(*term), u32::from_le_bytes(*life));
        Ok(Self { highest: Some(epoch), start: u64::from_le_bytes(start) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_and_belongs_to_its_run() {
        let record = RunRecord { highest: Some(Epoch::new(7, 3)), start: 9 };
        let bytes = record.encode(RunId::from_bits(1)).unwrap();
        assert_eq!(RunRecord::decode(RunId::from_bits(1), &bytes), Ok(record));
        assert!(RunRecord::decode(RunId::from_bits(2), &bytes).is_err());
    }
}
