//! Writes one partition file.
//!
//! A partition file holds the output of one attempt for one data set:
//!
//! ```text
//! region 0 | region 1 | ... | index | finish record | footer
//! ```
//!
//! A **region** holds what a writer had in memory when its budget was reached: all blocks ordered
//! by subpartition, then by order of writing. A partition that fits into memory has one region, and
//! is written once, in one go. Others keep several as long as each piece of a subpartition is large
//! enough to be read sequentially (128 KiB on average, at most 128 regions); else all regions are
//! merged into one before the seal. Merging always would write and read every byte twice.
//!
//! A **block** is a header and the bytes that a task wrote (all numbers are little-endian):
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | length of the block, without this header, at most 16 MiB |
//! | 4 | 4 | CRC32C of the length's four bytes, then the block |
//! | 8 | | the block |
//!
//! The **index** has one entry per subpartition and region, ordered by subpartition, then region, so
//! that a reader of a range reads one piece of it:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | offset of the first block within the file; 0 when there is none |
//! | 8 | 8 | bytes of all blocks with headers |
//! | 16 | 8 | number of records |
//! | 24 | 8 | number of blocks |
//! | 32 | 4 | CRC32C of all block headers, one after another |
//! | 36 | 4 | CRC32C of the entry's position in the index (4 bytes), then bytes 0 to 35 |
//!
//! The **finish record** is there when the attempt has this one output only: a `FinishRecord` as
//! `regrow_protocol::encode` makes it. The **footer**:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 16 | run id, big-endian |
//! | 16 | 8 | term of the attempt's epoch |
//! | 24 | 4 | life of the attempt's epoch |
//! | 28 | 4 | vertex |
//! | 32 | 4 | subtask |
//! | 36 | 4 | number of the attempt |
//! | 40 | 4 | data set |
//! | 44 | 4 | number of subpartitions, 1 to 1024 |
//! | 48 | 4 | number of regions, 0 to 128 |
//! | 52 | 4 | bytes of the finish record, or 0 |
//! | 56 | 8 | bytes of all regions: where the index begins |
//! | 64 | 4 | CRC32C of the index: the partition's checksum |
//! | 68 | 4 | CRC32C of the finish record |
//! | 72 | 4 | version: 1 |
//! | 76 | 4 | CRC32C of bytes 0 to 75 |
//! | 80 | 8 | `RGRWPART` |

use std::{
    fs::File,
    io::{self, IoSlice, Write},
    mem,
};

use regrow_protocol::PartitionId;

use crate::{
    block_header::BlockHeader,
    closed_partition::{ClosedPartition, Shape},
    disk_error::During,
    footer::REGIONS_MAX,
    run_directory::RunDirectory,
    segment::Segment,
    segment_copier::SegmentCopier,
    temporary::TemporaryFile,
    write_error::WriteError,
};

/// Average length of a segment below which regions are merged: long enough that a solid-state disk
/// reads at full speed, and a spinning one at a tenth of it, instead of a thousandth.
const SEGMENT_BYTES_MIN: u64 = 128 << 10;

/// Most segments of an unsealed partition in memory (48 MiB); more are merged into one region at
/// once. Tests have a smaller limit, so that they get there.
const SEGMENTS_MAX: usize = if cfg!(test) { 16 } else { 1 << 20 };

/// Most slices of one write (`IOV_MAX` of Linux).
const SLICES_MAX: usize = 1024;

/// Writes the regions of one partition into a temporary file, and closes it.
#[derive(Debug)]
pub(crate) struct PartitionWriter {
    partition: PartitionId,
    /// What waits in memory, one per subpartition, with offsets unset.
    pending: Vec<Segment>,
    /// Per region its segments that have blocks, ascending by subpartition.
    regions: Vec<Vec<(u32, Segment)>>,
    /// Bytes of all regions.
    length: u64,
    temporary: Option<TemporaryFile>,
}

impl PartitionWriter {
    /// A writer that has not made a file yet.
    pub(crate) fn new(partition: PartitionId, subpartitions: u32) -> Self {
        let pending = vec![Segment::default(); subpartitions as usize];
        Self { partition, pending, regions: Vec::new(), length: 0, temporary: None }
    }

    /// Whether there is such a subpartition.
    pub(crate) fn has(&self, subpartition: u32) -> bool {
        (subpartition as usize) < self.pending.len()
    }

    /// Counts a block that waits in memory, in a subpartition that [is there](Self::has).
    pub(crate) fn count(&mut self, subpartition: u32, header: BlockHeader, records: u64) {
        if let Some(segment) = self.pending.get_mut(subpartition as usize) {
            segment.add_block(header, records);
        }
    }

    /// Writes all counted blocks as one region; `slices` are their bytes, ordered.
    pub(crate) fn write_region<'a>(
        &mut self,
        run: &RunDirectory,
        slices: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), WriteError> {
        let mut region = Vec::new();
        let mut offset = self.length;
        for (subpartition, pending) in (0..).zip(&mut self.pending) {
            if pending.blocks > 0 {
                let segment = Segment { offset, ..mem::take(pending) };
                offset += segment.length;
                region.push((subpartition, segment));
            }
        }
        if region.is_empty() {
            return Ok(());
        }
        let temporary = self.take_file(run)?;
        write_slices(temporary.file(), slices).during("write blocks to", temporary.path())?;
        self.temporary = Some(temporary);
        self.length = offset;
        self.regions.push(region);
        if self.segments() > SEGMENTS_MAX {
            self.merge(run)?;
        }
        Ok(())
    }

    fn segments(&self) -> usize {
        self.regions.iter().map(Vec::len).sum()
    }

    /// The file, which is lost with its regions when the caller fails.
    fn take_file(&mut self, run: &RunDirectory) -> Result<TemporaryFile, WriteError> {
        match self.temporary.take() {
            Some(temporary) => Ok(temporary),
            None => run.create_temporary(self.partition.attempt),
        }
    }

    /// Whether readers of single subpartitions would jump about in the file.
    fn is_scattered(&self) -> bool {
        let regions = self.regions.len();
        regions > REGIONS_MAX as usize
            || (regions > 1 && self.length / (self.segments() as u64) < SEGMENT_BYTES_MIN)
    }

    /// Copies all regions into a new file, as one.
    fn merge(&mut self, run: &RunDirectory) -> Result<(), WriteError> {
        let Some(old) = self.temporary.take() else { return Ok(()) };
        let new = run.create_temporary(self.partition.attempt)?;
        let regions = mem::take(&mut self.regions);
        let mut cursors: Vec<_> = regions.iter().map(|region| region.iter().peekable()).collect();
        let mut copier = SegmentCopier::new(&old, &new);
        let mut merged = Vec::new();
        let mut offset = 0;
        for subpartition in (0..).take(self.pending.len()) {
            let mut total = Segment { offset, ..Segment::default() };
            let next = cursors.iter_mut().filter_map(|cursor| {
                cursor.next_if(|(of, _)| *of == subpartition).map(|(_, segment)| segment)
            });
            for segment in next {
                copier.copy(segment)?;
                total.append(segment);
            }
            if total.blocks > 0 {
                offset += total.length;
                merged.push((subpartition, total));
            }
        }
        copier.flush()?;
        self.regions = vec![merged];
        self.temporary = Some(new);
        Ok(())
    }

    /// The segments of all subpartitions and regions, in the order of the index.
    fn table(&self) -> Vec<Segment> {
        let regions = self.regions.len();
        let mut table = vec![Segment::default(); self.pending.len() * regions];
        let entries = self.regions.iter().enumerate().flat_map(|(region, segments)| {
            segments.iter().map(move |(of, segment)| (*of as usize * regions + region, segment))
        });
        for (position, segment) in entries {
            if let Some(entry) = table.get_mut(position) {
                *entry = *segment;
            }
        }
        table
    }

    /// Ends the data of the file; all blocks have been written.
    pub(crate) fn close(mut self, run: &RunDirectory) -> Result<ClosedPartition, WriteError> {
        if self.is_scattered() {
            self.merge(run)?;
        }
        let file = self.take_file(run)?;
        let shape = Shape {
            partition: self.partition,
            subpartitions: self.pending.len(),
            regions: self.regions.len(),
            data_bytes: self.length,
        };
        Ok(ClosedPartition::new(file, shape, &self.table()))
    }
}

fn write_slices<'a>(file: &File, slices: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
    let mut batch = Vec::with_capacity(SLICES_MAX);
    for slice in slices {
        batch.push(IoSlice::new(slice));
        if batch.len() == SLICES_MAX {
            write_batch(file, &mut batch)?;
            batch.clear();
        }
    }
    write_batch(file, &mut batch)
}

fn write_batch(mut file: &File, mut batch: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !batch.is_empty() {
        match file.write_vectored(batch) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut batch, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
