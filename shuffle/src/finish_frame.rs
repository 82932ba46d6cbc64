//! Finish records as frames of a file.
//!
//! A finish log, and the finish file of an attempt with several outputs, is a sequence of frames:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | `RGF1` |
//! | 4 | 4 | length of the body, little-endian |
//! | 8 | 4 | CRC32C of the length's four bytes, the kind and the body, little-endian |
//! | 12 | 1 | kind: 1 finished, 2 voided |
//! | 13 | | body: a `FinishRecord` as `regrow_protocol::encode` makes it (kind 1), or the 40 bytes of the attempt whose earlier frames count no more (kind 2): those that begin the footer of a partition file |
//!
//! Of several frames about one attempt the last counts. A frame that a crash or a full disk cut
//! off, or that was damaged, is skipped: reading goes on at the next magic with a right checksum.

use std::ops::Range;

use regrow_protocol::{ExecutionAttemptId, FinishRecord, decode, encode};

use crate::{
    attempt_bytes::{decode_attempt, encode_attempt},
    fields::Fields,
    write_error::WriteError,
};

/// Longest finish record, in bytes.
pub const FINISH_RECORD_BYTES_MAX: usize = 64 << 20;

const MAGIC: [u8; 4] = *b"RGF1";
const HEADER_BYTES: usize = 13;
const FINISHED: u8 = 1;
const VOIDED: u8 = 2;

/// What a frame says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FinishFrame {
    /// An attempt finished.
    Finished(Box<FinishRecord>),
    /// The earlier frames of an attempt count no more.
    Voided(ExecutionAttemptId),
}

/// Encodes a finish record, as it stands in a trailer or in the body of a frame.
pub(crate) fn encode_record(record: &FinishRecord) -> Result<Vec<u8>, WriteError> {
    let bytes = encode(record)?;
    if bytes.len() > FINISH_RECORD_BYTES_MAX {
        return Err(WriteError::RecordTooLong { bytes: bytes.len() });
    }
    Ok(bytes)
}

impl FinishFrame {
    /// The frame around an encoded record.
    pub(crate) fn finished(record: &[u8]) -> Vec<u8> {
        frame(FINISHED, record)
    }

    /// The frame that voids those of `attempt`.
    pub(crate) fn voided(attempt: ExecutionAttemptId) -> Vec<u8> {
        let mut body = Vec::new();
        encode_attempt(attempt, &mut body);
        frame(VOIDED, &body)
    }

    /// Reads the frame at the front of `bytes`, and tells its length; `None` if there is none.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut fields = Fields(bytes);
        if fields.array()? != MAGIC {
            return None;
        }
        let length = fields.u32()?;
        let stored = fields.u32()?;
        let [kind] = fields.array()?;
        let body = fields.0.get(..length as usize)?;
        if length as usize > FINISH_RECORD_BYTES_MAX || checksum(length, kind, body) != stored {
            return None;
        }
        let content = match kind {
            FINISHED => Self::Finished(Box::new(decode(body).ok()?)),
            VOIDED => Self::Voided(decode_attempt(&mut Fields(body))?),
            _ => return None,
        };
        Some((content, HEADER_BYTES + body.len()))
    }
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    // A body has at most FINISH_RECORD_BYTES_MAX bytes; a longer one would be unreadable.
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(HEADER_BYTES + body.len());
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&checksum(length, kind, body).to_le_bytes());
    frame.push(kind);
    frame.extend_from_slice(body);
    frame
}

fn checksum(length: u32, kind: u8, body: &[u8]) -> u32 {
    let [a, b, c, d] = length.to_le_bytes();
    crc32c::crc32c_append(crc32c::crc32c(&[a, b, c, d, kind]), body)
}

/// What was found in a file of frames.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameScan {
    /// The frames in order, each with the offset of its end.
    pub(crate) frames: Vec<(FinishFrame, u64)>,
    /// The bytes in which no frame could be read.
    pub(crate) damaged: Vec<Range<u64>>,
}

impl FrameScan {
    /// Reads all frames of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut scan = Self::default();
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if let Some((frame, length)) = FinishFrame::read(rest) {
                at += length;
                scan.frames.push((frame, at as u64));
                continue;
            }
            let skipped = next_magic(rest);
            scan.add_damage(at as u64..(at + skipped) as u64);
            at += skipped;
        }
        scan
    }

    fn add_damage(&mut self, range: Range<u64>) {
        match self.damaged.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.damaged.push(range),
        }
    }
}

/// How many bytes of `rest` come before a magic that is not its first byte's.
fn next_magic(rest: &[u8]) -> usize {
    let behind = rest.get(1..).unwrap_or_default();
    let position = behind.windows(MAGIC.len()).position(|window| window == MAGIC);
    position.map_or(rest.len(), |position| position + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regrow_protocol::{Epoch, JobVertexId, RunId};

    use super::*;

    fn attempt(subtask: u32) -> ExecutionAttemptId {
        let epoch = Epoch::new(1, 0);
        let run = RunId::from_bits(7);
        ExecutionAttemptId { run, vertex: JobVertexId(0), subtask, epoch, number: 0 }
    }

    fn log(subtasks: u32) -> (Vec<u8>, Vec<u64>) {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for subtask in 0..subtasks {
            bytes.extend(FinishFrame::voided(attempt(subtask)));
            ends.push(bytes.len() as u64);
        }
        (bytes, ends)
    }

    #[test]
    fn a_frame_that_was_cut_off_hides_none_behind_it() {
        let (bytes, _) = log(3);
        let cut = bytes.len() - 5;
        let mut torn = bytes.get(..cut).unwrap().to_vec();
        torn.extend_from_slice(&bytes);
        let scan = FrameScan::of(&torn);
        let found: Vec<_> = scan.frames.into_iter().map(|(frame, _)| frame).collect();
        let all = [0, 1, 0, 1, 2].map(|subtask| FinishFrame::Voided(attempt(subtask)));
        assert_eq!(found, all);
        assert_eq!(scan.damaged.len(), 1);
    }

    proptest! {
        #[test]
        fn any_flipped_byte_costs_one_frame(at in 0_usize..400, flip in 1_u8..) {
            let (mut bytes, ends) = log(4);
            let at = at % bytes.len();
            bytes[at] ^= flip;
            let scan = FrameScan::of(&bytes);
            let lost = ends.iter().filter(|end| **end <= at as u64).count();
            let expected: Vec<_> = (0..4).filter(|subtask| *subtask != lost)
                .map(|subtask| FinishFrame::Voided(attempt(u32::try_from(subtask).unwrap())))
                .collect();
            let found: Vec<_> = scan.frames.into_iter().map(|(frame, _)| frame).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(scan.damaged.len(), 1);
        }

        #[test]
        fn any_bytes_are_scanned(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let scan = FrameScan::of(&bytes);
            prop_assert!(scan.frames.is_empty());
        }
    }
}
