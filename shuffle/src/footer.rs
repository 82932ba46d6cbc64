//! The last bytes of a partition file.

use regrow_protocol::{DataSetId, PartitionId};

use crate::{
    attempt_bytes::{decode_attempt, encode_attempt},
    fields::Fields,
    finish_frame::FINISH_RECORD_BYTES_MAX,
    segment::Segment,
};

/// Most subpartitions of a partition.
pub const SUBPARTITIONS_MAX: u32 = 1024;

/// Most regions of a sealed file; more are merged into one. Bounds the index to 5 MiB.
pub(crate) const REGIONS_MAX: u32 = 128;

const MAGIC: [u8; 8] = *b"RGRWPART";
const VERSION: u32 = 1;

/// The fixed-size end of a partition file: whose it is and where the rest lies. Drawn in
/// [`partition_writer`](crate::partition_writer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    /// Whose output it is.
    pub(crate) partition: PartitionId,
    /// Number of subpartitions, 1 to [`SUBPARTITIONS_MAX`].
    pub(crate) subpartitions: u32,
    /// Number of regions, 0 (no blocks) to [`REGIONS_MAX`].
    pub(crate) regions: u32,
    /// Bytes of the finish record; 0 when it is elsewhere.
    pub(crate) record_bytes: u32,
    /// Bytes of all blocks; the index begins there.
    pub(crate) data_bytes: u64,
    /// CRC32C of the index.
    pub(crate) index_checksum: u32,
    /// CRC32C of the finish record.
    pub(crate) record_checksum: u32,
}

impl Footer {
    /// Bytes in the file.
    pub(crate) const BYTES: usize = 88;

    /// Bytes of the index.
    pub(crate) fn index_bytes(&self) -> usize {
        self.subpartitions as usize * self.regions as usize * Segment::BYTES
    }

    /// Adds the footer to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        encode_attempt(self.partition.attempt, out);
        for field in
            [self.partition.data_set.0, self.subpartitions, self.regions, self.record_bytes]
        {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&self.data_bytes.to_le_bytes());
        for field in [self.index_checksum, self.record_checksum, VERSION] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        let checksum = crc32c::crc32c(out.get(start..).unwrap_or_default());
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&MAGIC);
    }

    /// Reads the last bytes of a file of `file_bytes` bytes that should be `partition`.
    ///
    /// # Errors
    /// With what was found instead.
    pub(crate) fn decode(
        bytes: &[u8; Self::BYTES],
        file_bytes: u64,
        partition: PartitionId,
    ) -> Result<Self, String> {
        let (content, end) = bytes.split_at(Self::BYTES - 12);
        let (checksum, magic) = end.split_at(4);
        if magic != MAGIC {
            return Err("its end is not that of a partition file".to_owned());
        }
        if crc32c::crc32c(content).to_le_bytes() != checksum {
            return Err("its footer has a wrong checksum".to_owned());
        }
        let (footer, version) = Self::fields(content).ok_or("its footer is too short")?;
        if version != VERSION {
            return Err(format!("its format is {version}, this program reads {VERSION}"));
        }
        if footer.partition != partition {
            return Err(format!("it holds {} instead", footer.partition));
        }
        footer.check(file_bytes)?;
        Ok(footer)
    }

    fn fields(content: &[u8]) -> Option<(Self, u32)> {
        let mut fields = Fields(content);
        let attempt = decode_attempt(&mut fields)?;
        let footer = Self {
            partition: PartitionId { attempt, data_set: DataSetId(fields.u32()?) },
            subpartitions: fields.u32()?,
            regions: fields.u32()?,
            record_bytes: fields.u32()?,
            data_bytes: fields.u64()?,
            index_checksum: fields.u32()?,
            record_checksum: fields.u32()?,
        };
        Some((footer, fields.u32()?))
    }

    fn check(&self, file_bytes: u64) -> Result<(), String> {
        let in_range = (1..=SUBPARTITIONS_MAX).contains(&self.subpartitions)
            && self.regions <= REGIONS_MAX
            && self.record_bytes as usize <= FINISH_RECORD_BYTES_MAX;
        if !in_range {
            return Err("its footer holds values that are out of range".to_owned());
        }
        let trailer = self.index_bytes() + self.record_bytes as usize + Self::BYTES;
        if self.data_bytes.checked_add(trailer as u64) != Some(file_bytes) {
            return Err(format!(
                "it has {file_bytes} bytes, but its footer tells of {} and {trailer}",
                self.data_bytes
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::{Epoch, ExecutionAttemptId, JobVertexId, RunId};

    use super::*;

    #[test]
    fn a_footer_keeps_its_bytes() {
        let attempt = ExecutionAttemptId {
            run: RunId::from_bits(0x11),
            vertex: JobVertexId(2),
            subtask: 3,
            epoch: Epoch::new(4, 5),
            number: 6,
        };
        let footer = Footer {
            partition: PartitionId { attempt, data_set: DataSetId(7) },
            subpartitions: 8,
            regions: 1,
            record_bytes: 9,
            data_bytes: 10,
            index_checksum: 11,
            record_checksum: 12,
        };
        let mut bytes = Vec::new();
        footer.encode(&mut bytes);
        let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        assert_eq!(
            hex,
            "000000000000000000000000000000110400000000000000050000000200000003000000060000000700\
             00000800000001000000090000000a000000000000000b0000000c00000001000000a6ee741a\
             5247525750415254"
        );
        let bytes: [u8; Footer::BYTES] = bytes.try_into().unwrap();
        let length = 10 + 8 * 40 + 9 + 88;
        assert_eq!(Footer::decode(&bytes, length, footer.partition), Ok(footer));
        assert!(Footer::decode(&bytes, length - 1, footer.partition).is_err());
        let other = PartitionId { attempt, data_set: DataSetId(0) };
        assert!(Footer::decode(&bytes, length, other).unwrap_err().contains("data set 7"));
    }
}
