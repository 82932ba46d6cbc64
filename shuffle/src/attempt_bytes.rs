//! An attempt's id in 40 bytes, as footers and void frames hold it.

use regrow_protocol::{Epoch, ExecutionAttemptId, JobVertexId, RunId};

use crate::fields::Fields;

/// Bytes of an attempt's id: run (16, big-endian), term (8), life, vertex, subtask, number (4
/// each, little-endian like the term).
#[cfg(test)]
pub(crate) const ATTEMPT_BYTES: usize = 40;

/// Adds an attempt's id to `out`.
pub(crate) fn encode_attempt(attempt: ExecutionAttemptId, out: &mut Vec<u8>) {
    out.extend_from_slice(&attempt.run.bits().to_be_bytes());
    out.extend_from_slice(&attempt.epoch.term.to_le_bytes());
    for field in [attempt.epoch.life, attempt.vertex.0, attempt.subtask, attempt.number] {
        out.extend_from_slice(&field.to_le_bytes());
    }
}

/// Reads an attempt's id; `None` when there are too few bytes.
pub(crate) fn decode_attempt(fields: &mut Fields<'_>) -> Option<ExecutionAttemptId> {
    let run = RunId::from_bits(u128::from_be_bytes(fields.array()?));
    let epoch = Epoch { term: fields.u64()?, life: fields.u32()? };
    let vertex = JobVertexId(fields.u32()?);
    Some(ExecutionAttemptId { run, vertex, subtask: fields.u32()?, epoch, number: fields.u32()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_survives_its_bytes() {
        let attempt = ExecutionAttemptId {
            run: RunId::from_bits(u128::MAX - 1),
            vertex: JobVertexId(2),
            subtask: 3,
            epoch: Epoch::new(4, 5),
            number: 6,
        };
        let mut bytes = Vec::new();
        encode_attempt(attempt, &mut bytes);
        assert_eq!(bytes.len(), ATTEMPT_BYTES);
        assert_eq!(decode_attempt(&mut Fields(&bytes)), Some(attempt));
        bytes.pop();
        assert_eq!(decode_attempt(&mut Fields(&bytes)), None);
    }
}
