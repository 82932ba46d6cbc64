//! A partition whose blocks are all written.

use regrow_protocol::{PartitionId, PartitionMetrics, SubpartitionBytes};

use crate::{
    disk_error::{DiskError, During},
    footer::Footer,
    run_directory::UnsealedFile,
    run_file::RunFile,
    segment::Segment,
    temporary::TemporaryFile,
};

/// A partition whose blocks are all written and whose trailer is not.
#[derive(Debug)]
pub(crate) struct ClosedPartition {
    file: TemporaryFile,
    index: Vec<u8>,
    footer: Footer,
    metrics: PartitionMetrics,
}

/// What a trailer tells besides its index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Whose output it is.
    pub(crate) partition: PartitionId,
    /// At most [`SUBPARTITIONS_MAX`](crate::SUBPARTITIONS_MAX).
    pub(crate) subpartitions: usize,
    /// At most [`REGIONS_MAX`](crate::footer::REGIONS_MAX).
    pub(crate) regions: usize,
    /// Bytes of all regions.
    pub(crate) data_bytes: u64,
}

impl ClosedPartition {
    /// Indexes `file` by `table`, which has a segment per subpartition and region.
    pub(crate) fn new(file: TemporaryFile, shape: Shape, table: &[Segment]) -> Self {
        let mut index = Vec::with_capacity(table.len() * Segment::BYTES);
        for (position, segment) in (0..).zip(table) {
            segment.encode(position, &mut index);
        }
        let mut bytes = vec![0; shape.subpartitions];
        for (of, segments) in bytes.iter_mut().zip(table.chunks(shape.regions.max(1))) {
            *of = segments.iter().map(Segment::payload_bytes).sum();
        }
        let footer = Footer {
            partition: shape.partition,
            subpartitions: u32::try_from(shape.subpartitions).unwrap_or(u32::MAX),
            regions: u32::try_from(shape.regions).unwrap_or(u32::MAX),
            record_bytes: 0,
            data_bytes: shape.data_bytes,
            index_checksum: crc32c::crc32c(&index),
            record_checksum: crc32c::crc32c(&[]),
        };
        let metrics = PartitionMetrics {
            data_set: shape.partition.data_set,
            subpartition_bytes: SubpartitionBytes::new(&bytes),
            records: table.iter().fold(0, |sum, segment| sum.saturating_add(segment.records)),
            checksum: footer.index_checksum,
        };
        Self { file, index, footer, metrics }
    }

    /// Size and shape of the partition.
    pub(crate) fn metrics(&self) -> &PartitionMetrics {
        &self.metrics
    }

    /// Writes the trailer, with the encoded finish record if it is to stand there.
    pub(crate) fn write_trailer(mut self, record: &[u8]) -> Result<UnsealedFile, DiskError> {
        self.footer.record_bytes = u32::try_from(record.len()).unwrap_or(u32::MAX);
        self.footer.record_checksum = crc32c::crc32c(record);
        let mut trailer = self.index;
        trailer.extend_from_slice(record);
        self.footer.encode(&mut trailer);
        self.file.write(&trailer).during("write an index to", self.file.path())?;
        Ok(UnsealedFile {
            name: RunFile::Partition(self.footer.partition),
            bytes: self.footer.data_bytes + trailer.len() as u64,
            temporary: self.file,
        })
    }
}
