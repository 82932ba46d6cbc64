//! The frame around one batch: nothing in it is believed before its checksum.
//!
//! Integers are little-endian.
//! ```text
//! offset  bytes  meaning
//!      0      4  "RGWB"
//!      4      4  format of the frame: 1
//!      8      8  bytes of the batch, 1 to BATCH_BYTES_MAX
//!     16     16  run id
//!     32      8  term of the epoch that wrote it
//!     40      4  life within the term
//!     44      8  sequence number of the batch within the log, from 0
//!     52      4  CRC32C of offsets 0 to 52 and of the batch
//!     56      n  the batch
//! ```

use regrow_protocol::{Epoch, RunId};
use thiserror::Error;

use crate::{BatchPosition, StoreError};

/// Most bytes of one batch. A snapshot of a very large job takes tens of megabytes; a length above
/// this is garbage, and what cannot be read back must not be written.
pub const BATCH_BYTES_MAX: u64 = 256 << 20;

const MAGIC: [u8; 4] = *b"RGWB";
const FORMAT: u32 = 1;
const CHECKSUM_OFFSET: usize = 52;
const HEADER_BYTES: usize = 56;

/// A frame whose checksum was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) epoch: Epoch,
    pub(crate) sequence: u64,
    pub(crate) checksum: u32,
    pub(crate) batch: &'a [u8],
}

impl Frame<'_> {
    /// Bytes of the whole frame.
    pub(crate) fn len(&self) -> usize {
        HEADER_BYTES + self.batch.len()
    }
}

/// Why bytes are not a frame.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum FrameError {
    /// The bytes end before the frame does, or are zeros that a file system left there.
    #[error("incomplete batch: {needed} bytes are needed, {found} are there")]
    Incomplete { needed: u64, found: u64 },
    #[error("no batch begins here")]
    NoMagic,
    #[error("batch has format {found}, this program reads {FORMAT}")]
    Format { found: u32 },
    #[error("batch has a length of {found} bytes, 1 to {BATCH_BYTES_MAX} are allowed")]
    Length { found: u64 },
    #[error("batch has checksum {computed:08x}, {stored:08x} is stored")]
    Checksum { stored: u32, computed: u32 },
    #[error("batch belongs to run {found}")]
    OtherRun { found: RunId },
}

/// Frames `batch`; the second value is its checksum.
///
/// # Errors
/// [`StoreError::Invalid`] when the batch is empty or longer than [`BATCH_BYTES_MAX`].
pub(crate) fn encode(
    run: RunId,
    epoch: Epoch,
    sequence: u64,
    batch: &[u8],
) -> Result<(Vec<u8>, u32), StoreError> {
    let length = batch.len() as u64;
    if length == 0 || length > BATCH_BYTES_MAX {
        let reason = format!("a batch has {length} bytes, 1 to {BATCH_BYTES_MAX} are allowed");
        return Err(StoreError::Invalid { reason });
    }
    let mut bytes = Vec::with_capacity(HEADER_BYTES + batch.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&run.bits().to_le_bytes());
    bytes.extend_from_slice(&epoch.term.to_le_bytes());
    bytes.extend_from_slice(&epoch.life.to_le_bytes());
    bytes.extend_from_slice(&sequence.to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes), batch);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.extend_from_slice(batch);
    Ok((bytes, checksum))
}

/// Reads the frame of `run` at the start of `bytes`; what follows it is not looked at. Allocates
/// nothing.
pub(crate) fn decode(run: RunId, bytes: &[u8]) -> Result<Frame<'_>, FrameError> {
    let found = bytes.len() as u64;
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        let begins = bytes.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic);
        if begins || bytes.iter().all(|byte| *byte == 0) {
            return Err(FrameError::Incomplete { needed: HEADER_BYTES as u64, found });
        }
        return Err(FrameError::NoMagic);
    };
    if header[..4] != MAGIC {
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(FrameError::Incomplete { needed: HEADER_BYTES as u64, found: 0 });
        }
        return Err(FrameError::NoMagic);
    }
    let format = u32::from_le_bytes(field(header, 4));
    if format != FORMAT {
        return Err(FrameError::Format { found: format });
    }
    let length = u64::from_le_bytes(field(header, 8));
    if length == 0 || length > BATCH_BYTES_MAX {
        return Err(FrameError::Length { found: length });
    }
    let Some(batch) = usize::try_from(length).ok().and_then(|length| rest.get(..length)) else {
        return Err(FrameError::Incomplete { needed: HEADER_BYTES as u64 + length, found });
    };
    let stored = u32::from_le_bytes(field(header, CHECKSUM_OFFSET));
    let computed = crc32c::crc32c_append(crc32c::crc32c(&header[..CHECKSUM_OFFSET]), batch);
    if stored != computed {
        return Err(FrameError::Checksum { stored, computed });
    }
    let owner = RunId::from_bits(u128::from_le_bytes(field(header, 16)));
    if owner != run {
        return Err(FrameError::OtherRun { found: owner });
    }
    Ok(Frame {
        epoch: Epoch::new(
            u64::from_le_bytes(field(header, 32)),
            u32::from_le_bytes(field(header, 40)),
        ),
        sequence: u64::from_le_bytes(field(header, 44)),
        checksum: stored,
        batch,
    })
}

/// The offset, from `from` on, of the next valid frame of `run` with at least this sequence number.
pub(crate) fn find(run: RunId, bytes: &[u8], from: usize, sequence: u64) -> Option<usize> {
    let candidates = bytes.get(from..)?.windows(MAGIC.len()).enumerate();
    for (offset, window) in candidates {
        if window != MAGIC {
            continue;
        }
        let at = from + offset;
        if decode(run, &bytes[at..]).is_ok_and(|frame| frame.sequence >= sequence) {
            return Some(at);
        }
    }
    None
}

/// Refuses a position at which `bytes` are not the batch that it names.
pub(crate) fn check_at(
    run: RunId,
    position: BatchPosition,
    bytes: Option<&[u8]>,
) -> Result<(), StoreError> {
    let frame = bytes.and_then(|bytes| decode(run, bytes).ok());
    let matches = |frame: Frame<'_>| {
        frame.sequence == position.sequence && frame.checksum == position.checksum
    };
    if frame.is_some_and(matches) {
        return Ok(());
    }
    let BatchPosition { segment, sequence, checksum } = position;
    let reason = format!(
        "run {run} has no batch {sequence} with checksum {checksum:08x} in segment {segment} that \
         could stand for those before it"
    );
    Err(StoreError::Invalid { reason })
}

fn field<const N: usize>(header: &[u8; HEADER_BYTES], offset: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&header[offset..offset + N]);
    bytes
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;

    const RUN: RunId = RunId::from_bits(7);

    fn framed(batch: &[u8]) -> Vec<u8> {
        encode(RUN, Epoch::new(3, 1), 9, batch).unwrap().0
    }

    #[test]
    fn the_bytes_of_format_1_stay_readable_for_ever() {
        let golden = concat!(
            "52475742010000000500000000000000",
            "07000000000000000000000000000000",
            "0300000000000000",
            "01000000",
            "0900000000000000",
            "5031a5d6",
            "68656c6c6f",
        );
        let mut hex = String::new();
        for byte in framed(b"hello") {
            write!(hex, "{byte:02x}").unwrap();
        }
        assert_eq!(hex, golden);
    }

    #[test]
    fn log_1_a_garbage_length_is_an_error() {
        for length in [0, 1 << 31, 1 << 63, u64::MAX] {
            let mut bytes = framed(b"hello");
            bytes[8..16].copy_from_slice(&u64::to_le_bytes(length));
            assert_eq!(decode(RUN, &bytes), Err(FrameError::Length { found: length }));
        }
        let mut bytes = framed(b"hello");
        bytes[8..16].copy_from_slice(&BATCH_BYTES_MAX.to_le_bytes());
        assert!(matches!(decode(RUN, &bytes), Err(FrameError::Incomplete { .. })));
    }

    #[test]
    fn an_empty_batch_is_refused() {
        assert!(matches!(encode(RUN, Epoch::default(), 0, &[]), Err(StoreError::Invalid { .. })));
    }

    #[test]
    fn a_frame_of_another_run_is_not_taken_for_ours() {
        let other = RunId::from_bits(8);
        assert_eq!(decode(other, &framed(b"x")), Err(FrameError::OtherRun { found: RUN }));
    }

    #[test]
    fn every_cut_is_incomplete() {
        let bytes = framed(b"hello");
        for length in 0..bytes.len() {
            let result = decode(RUN, &bytes[..length]);
            assert!(matches!(result, Err(FrameError::Incomplete { .. })), "{length}");
        }
    }

    #[test]
    fn zeros_are_a_batch_that_never_arrived() {
        assert!(matches!(decode(RUN, &[0; 4096]), Err(FrameError::Incomplete { .. })));
    }

    #[test]
    fn the_next_frame_is_found_behind_garbage() {
        let mut bytes = b"RGWB garbage RGWB".to_vec();
        let at = bytes.len();
        bytes.extend_from_slice(&framed(b"hello"));
        assert_eq!(find(RUN, &bytes, 0, 9), Some(at));
        assert_eq!(find(RUN, &bytes, 0, 10), None);
        assert_eq!(find(RUN, &bytes, bytes.len() + 1, 0), None);
    }

    proptest! {
        #[test]
        fn any_batch_survives_its_frame(batch in prop::collection::vec(any::<u8>(), 1..500)) {
            let bytes = framed(&batch);
            let frame = decode(RUN, &bytes).unwrap();
            prop_assert_eq!(frame.batch, &batch[..]);
            prop_assert_eq!((frame.epoch, frame.sequence), (Epoch::new(3, 1), 9));
            prop_assert_eq!(frame.len(), bytes.len());
        }

        #[test]
        fn any_flipped_bit_is_noticed(at in 0usize..61, bit in 0u8..8) {
            let mut bytes = framed(b"hello");
            bytes[at] ^= 1 << bit;
            prop_assert!(decode(RUN, &bytes).is_err());
        }

        #[test]
        fn any_bytes_are_an_error_and_never_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            prop_assert!(decode(RUN, &bytes).is_err());
            prop_assert_eq!(find(RUN, &bytes, 0, 0), None);
        }
    }
}
