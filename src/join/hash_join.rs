//! Joins two sides that come row by row, the right one first.

use std::mem;

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

use super::{
    join_output::{JoinOutput, Side},
    partition_join::PartitionJoin,
    row::Row,
    row_table::RowTable,
    spilled_side::{Division, SpilledSide},
};

/// A join in its first pass: all in memory, or both sides divided among files.
pub(super) struct HashJoin<O> {
    pub(super) partitions: PartitionJoin<O>,
    progress: Progress,
}

enum Progress {
    /// The right side comes and fits so far; when the left one comes, all of it is there.
    InMemory(RowTable),
    /// The right side comes and is divided.
    RightSpills(SpilledSide),
    /// The left side comes and is divided as the right one was.
    LeftSpills(Division),
}

impl<O: JoinOutput> HashJoin<O> {
    /// Begins a join that takes `memory_bytes`.
    pub(super) fn new(output: O, memory_bytes: u64) -> Self {
        let partitions = PartitionJoin::new(output, memory_bytes);
        let progress = Progress::InMemory(partitions.table());
        Self { partitions, progress }
    }

    /// Takes a row; those of the right side come first.
    #[inline]
    pub(super) fn push(
        &mut self,
        side: Side,
        row: &Row<'_>,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        match (&mut self.progress, side) {
            (Progress::InMemory(table), Side::Left) => {
                self.partitions.probe(table, Side::Left, row, context)
            }
            (Progress::InMemory(table), Side::Right) => {
                if table.push(row) {
                    Ok(())
                } else {
                    self.spill_right(row, context)
                }
            }
            (_, Side::Right) => self.spill_right(row, context),
            (_, Side::Left) => self.spill_left(row, context),
        }
    }

    /// All rows came: joins what was divided, and gives the output back.
    pub(super) fn finish(mut self, context: &mut dyn TaskContext) -> Result<O, TaskFailure> {
        let division = match self.progress {
            // In the second case, no left row came.
            Progress::InMemory(_) | Progress::RightSpills(_) => {
                return Ok(self.partitions.into_output());
            }
            Progress::LeftSpills(division) => division,
        };
        self.partitions.join_parts(division, Side::Left, 1, context)?;
        Ok(self.partitions.into_output())
    }

    #[cold]
    fn spill_right(
        &mut self,
        row: &Row<'_>,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let partitions = &mut self.partitions;
        if let Progress::InMemory(table) = &mut self.progress {
            let mut side = partitions.side(0);
            for (key, records) in table.iter() {
                side.write_all(key, records, &mut partitions.numbers, context)?;
            }
            self.progress = Progress::RightSpills(side);
        }
        let Progress::RightSpills(side) = &mut self.progress else {
            return Err(TaskFailure::unrecoverable("a right row came after the left ones"));
        };
        side.write(row, &mut partitions.numbers, context)
    }

    fn spill_left(
        &mut self,
        row: &Row<'_>,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        if let Progress::RightSpills(side) = &mut self.progress {
            let right = mem::replace(side, self.partitions.side(0)).finish()?;
            let probe = self.partitions.side(0);
            self.progress = Progress::LeftSpills(Division { build: right, probe });
        }
        let Progress::LeftSpills(division) = &mut self.progress else { return Ok(()) };
        self.partitions.divide_probe(division, row, context)
    }
}
