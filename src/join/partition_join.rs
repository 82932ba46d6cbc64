//! Joins what was divided among files.

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

use super::{
    join_output::{JoinOutput, Side},
    key_partition::{LEVELS_MAX, PARTITIONS, partition_of},
    marks::Marks,
    row::Row,
    row_table::RowTable,
    spilled_side::{Division, FileNumbers, SpilledRows, SpilledSide},
};
use crate::{
    cancel_check::CancelCheck,
    spill::{EntryReader, Position, SpillFile},
};

/// Which part of a join's memory marks and chunks of files may take each; the rest is for rows.
const SHARE: u64 = 8;

/// Bytes of a chunk of a file, where there is much memory.
const CHUNK_BYTES_MAX: usize = 64 << 10;

/// Bytes of a chunk, where there is little.
const CHUNK_BYTES_MIN: usize = 4 << 10;

/// Left rows whose partners are looked for at once, where memory is scarce.
const MARKS_MIN: u64 = 64 << 10;

/// Joins files of rows: one side is kept in memory, row by row of the other, the probe, goes by.
pub(super) struct PartitionJoin<O> {
    output: O,
    memory_bytes: u64,
    /// Left rows that may be marked at once.
    pub(super) marks_max: u64,
    pub(super) numbers: FileNumbers,
    check: CancelCheck,
}

/// Some rows of one side, with which those of the other are joined.
struct Pass<'a> {
    /// Where the stretch begins.
    start: Position,
    table: &'a RowTable,
    /// Whether all other rows were there before.
    is_last: bool,
    /// Rows of the stretch that have partners.
    found: &'a mut Marks,
}

/// Two files whose rows are joined.
struct Sides {
    build: SpilledRows,
    probe: SpilledRows,
    probe_side: Side,
}

impl<O: JoinOutput> PartitionJoin<O> {
    /// Makes one that takes `memory_bytes`.
    pub(super) fn new(output: O, memory_bytes: u64) -> Self {
        Self {
            output,
            memory_bytes,
            // Marks are bits.
            marks_max: (memory_bytes / SHARE).saturating_mul(8).max(MARKS_MIN),
            numbers: FileNumbers::default(),
            check: CancelCheck::default(),
        }
    }

    /// An empty table for the rows that are kept.
    pub(super) fn table(&self) -> RowTable {
        RowTable::new(self.table_bytes())
    }

    /// Begins to divide a side.
    pub(super) fn side(&self, level: u32) -> SpilledSide {
        SpilledSide::new(level, self.chunk_bytes())
    }

    /// Gives the output back.
    pub(super) fn into_output(self) -> O {
        self.output
    }

    /// Passes on the pairs of a row. In a join that keeps left rows,
    /// the table holds all rows of the other side.
    #[inline]
    pub(super) fn probe(
        &mut self,
        table: &RowTable,
        side: Side,
        row: &Row<'_>,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        match table.rows(&row.key) {
            Some(partners) => self.output.pairs(side, row.record, partners, context),
            None => self.alone(row, context),
        }
    }

    /// Puts a row of the probe where the rows of its key were put; if there are none, it is alone.
    pub(super) fn divide_probe(
        &mut self,
        division: &mut Division,
        row: &Row<'_>,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let Division { build, probe } = division;
        if build.get(partition_of(row.key.hash(), probe.level())).is_none_or(Option::is_none) {
            return self.alone(row, context);
        }
        probe.write(row, &mut self.numbers, context)
    }

    /// Joins two sides that were divided alike; `level` is the one by which they may be divided
    /// next.
    pub(super) fn join_parts(
        &mut self,
        division: Division,
        probe_side: Side,
        level: u32,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        for (probe, build) in division.probe.finish()?.into_iter().zip(division.build) {
            let (Some(probe), Some(build)) = (probe, build) else { continue };
            let mut sides = Sides { build, probe, probe_side };
            if !O::KEEPS_LEFT {
                sides.keep_the_smaller();
            }
            self.join(sides, level, context)?;
        }
        Ok(())
    }

    fn join(
        &mut self,
        sides: Sides,
        level: u32,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        if sides.build.file.bytes() <= self.table_bytes() {
            let mut table = self.table();
            if self.load(&mut table, &sides.build.file, context)? {
                return self.probe_all(&table, &sides, context);
            }
        }
        if sides.build.one_hash || level >= LEVELS_MAX {
            return self.join_in_passes(&sides, context);
        }
        let Sides { build, probe, probe_side } = sides;
        let build = self.divide_build(build, level, context)?;
        let mut division = Division { build, probe: self.side(level) };
        let mut reader = EntryReader::open(&probe.file)?;
        while reader.advance()? {
            self.check.count(context)?;
            self.divide_probe(&mut division, &row(&reader), context)?;
        }
        drop((reader, probe));
        self.join_parts(division, probe_side, level + 1, context)
    }

    fn divide_build(
        &mut self,
        build: SpilledRows,
        level: u32,
        context: &mut dyn TaskContext,
    ) -> Result<Vec<Option<SpilledRows>>, TaskFailure> {
        let mut divided = self.side(level);
        let mut reader = EntryReader::open(&build.file)?;
        while reader.advance()? {
            self.check.count(context)?;
            divided.write(&row(&reader), &mut self.numbers, context)?;
        }
        divided.finish()
    }

    /// Puts all rows of a file into a table; says whether they fit.
    fn load(
        &mut self,
        table: &mut RowTable,
        file: &SpillFile,
        context: &mut dyn TaskContext,
    ) -> Result<bool, TaskFailure> {
        let mut reader = EntryReader::open(file)?;
        while reader.advance()? {
            self.check.count(context)?;
            if !table.push(&row(&reader)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn probe_all(
        &mut self,
        table: &RowTable,
        sides: &Sides,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let mut reader = EntryReader::open(&sides.probe.file)?;
        while reader.advance()? {
            self.check.count(context)?;
            self.probe(table, sides.probe_side, &row(&reader), context)?;
        }
        Ok(())
    }

    /// Joins rows that cannot be divided: as many of one side as fit with all of the other, then the
    /// next ones.
    fn join_in_passes(
        &mut self,
        sides: &Sides,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let mut next = Some(Position::default());
        while let Some(start) = next {
            next = self.join_stretch(sides, start, context)?;
        }
        Ok(())
    }

    /// Joins a stretch of the probe: in a join that keeps left rows as many of them as can be
    /// marked, else all. Says where the next stretch begins.
    fn join_stretch(
        &mut self,
        sides: &Sides,
        start: Position,
        context: &mut dyn TaskContext,
    ) -> Result<Option<Position>, TaskFailure> {
        let mut found = Marks::default();
        let mut table = self.table();
        let mut build = EntryReader::open(&sides.build.file)?;
        let mut has_more = build.advance()?;
        loop {
            table.clear();
            while has_more && table.push(&row(&build)) {
                self.check.count(context)?;
                has_more = build.advance()?;
            }
            let pass = Pass { start, table: &table, is_last: !has_more, found: &mut found };
            let next = self.pass(sides, pass, context)?;
            if !has_more {
                return Ok(next);
            }
        }
    }

    /// Joins a stretch of the probe with some rows of the other side. Says where the next
    /// stretch begins.
    fn pass(
        &mut self,
        sides: &Sides,
        mut pass: Pass<'_>,
        context: &mut dyn TaskContext,
    ) -> Result<Option<Position>, TaskFailure> {
        let rows = if O::KEEPS_LEFT { self.marks_max } else { u64::MAX };
        let mut probe = EntryReader::open_at(&sides.probe.file, pass.start)?;
        for number in 0..rows {
            if !probe.advance()? {
                break;
            }
            self.check.count(context)?;
            let row = row(&probe);
            let partners = pass.table.rows(&row.key);
            if O::KEEPS_LEFT && pass.proves_alone(number, partners.is_some()) {
                self.alone(&row, context)?;
            }
            if let Some(partners) = partners {
                self.output.pairs(sides.probe_side, row.record, partners, context)?;
            }
        }
        Ok(probe.next_position())
    }

    #[inline]
    fn alone(&mut self, row: &Row<'_>, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        // Where left rows are kept, the left side is the probe.
        if O::KEEPS_LEFT { self.output.alone(row.record, context) } else { Ok(()) }
    }

    fn table_bytes(&self) -> u64 {
        self.memory_bytes - 2 * (self.memory_bytes / SHARE)
    }

    fn chunk_bytes(&self) -> usize {
        let chunks_bytes = usize::try_from(self.memory_bytes / SHARE).unwrap_or(usize::MAX);
        (chunks_bytes / PARTITIONS).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
    }
}

impl Pass<'_> {
    /// Notes whether a row of the stretch has partners here; says whether it has none anywhere.
    fn proves_alone(&mut self, number: u64, has_partners: bool) -> bool {
        if has_partners {
            self.found.set(number);
            return false;
        }
        self.is_last && !self.found.has(number)
    }
}

impl Sides {
    /// Lets the larger file go by.
    fn keep_the_smaller(&mut self) {
        if self.probe.file.bytes() >= self.build.file.bytes() {
            return;
        }
        std::mem::swap(&mut self.probe, &mut self.build);
        self.probe_side = match self.probe_side {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        };
    }
}

/// The row at which a reader is.
#[inline]
fn row(reader: &EntryReader) -> Row<'_> {
    Row::new(reader.key(), reader.value())
}
