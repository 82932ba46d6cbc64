//! The sorted runs of an attempt.

use std::path::PathBuf;

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

use super::{arena::Arena, merge::Merge};
use crate::{
    cancel_check::CancelCheck,
    spill::{EntryWriter, SpillFile},
};

/// Runs that are merged at once: each has a file open and a chunk in memory.
const FAN_IN_MAX: u64 = 64;

/// Bytes of a chunk, where there is much memory: longer ones are read no faster.
const CHUNK_BYTES_MAX: u64 = 256 << 10;

/// Bytes of a chunk, where there is little.
const CHUNK_BYTES_MIN: u64 = 4 << 10;

/// Sorted runs in the spill directory of an attempt. Those of a level have about the same length,
/// and when there are as many as are merged at once, they become one of the next level: so each
/// entry is written once a level.
#[derive(Debug)]
pub(crate) struct Runs {
    levels: Vec<Vec<SpillFile>>,
    fan_in: usize,
    chunk_bytes: usize,
    written: u64,
    directory: Option<PathBuf>,
}

impl Runs {
    /// No runs. Merging them takes about `memory_bytes`, or two chunks and one if that is more.
    pub(crate) fn new(memory_bytes: u64) -> Self {
        let fan_in = (memory_bytes / CHUNK_BYTES_MIN).saturating_sub(1).clamp(2, FAN_IN_MAX);
        let chunk_bytes = memory_bytes / (fan_in + 1);
        Self {
            levels: Vec::new(),
            fan_in: usize::try_from(fan_in).unwrap_or(2),
            chunk_bytes: usize::try_from(chunk_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX))
                .unwrap_or(usize::MAX),
            written: 0,
            directory: None,
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// Writes the content of `arena` as a run, and clears it.
    pub(super) fn spill(
        &mut self,
        arena: &mut Arena,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        arena.sort();
        let mut run = self.begin(context)?;
        let mut check = CancelCheck::default();
        for entry in arena.iter() {
            check.count(context)?;
            run.write(entry.key, entry.record)?;
        }
        arena.clear();
        self.end(run, context)
    }

    /// Ends a run, and merges where there are enough of a level.
    pub(crate) fn end(
        &mut self,
        run: EntryWriter,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        self.add(run.finish()?, 0);
        let mut level = 0;
        while self.levels[level].len() >= self.fan_in {
            let runs = std::mem::take(&mut self.levels[level]);
            level += 1;
            let merged = self.merge_to_run(runs, context)?;
            self.add(merged, level);
        }
        Ok(())
    }

    /// Merges until all that is left can be merged at once, and begins to. There is at least one
    /// run.
    pub(crate) fn merge(&mut self, context: &mut dyn TaskContext) -> Result<Merge, TaskFailure> {
        let mut runs: Vec<SpillFile> = self.levels.drain(..).flatten().collect();
        while runs.len() > self.fan_in {
            // The shortest ones, and no more of them than must be.
            runs.sort_by_key(SpillFile::bytes);
            let count = self.fan_in.min(runs.len() - self.fan_in + 1);
            let shortest = runs.drain(..count).collect();
            runs.push(self.merge_to_run(shortest, context)?);
        }
        Merge::open(runs)
    }

    fn add(&mut self, run: SpillFile, level: usize) {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Vec::new);
        }
        self.levels[level].push(run);
    }

    fn merge_to_run(
        &mut self,
        runs: Vec<SpillFile>,
        context: &mut dyn TaskContext,
    ) -> Result<SpillFile, TaskFailure> {
        let mut merged = self.begin(context)?;
        let mut merge = Merge::open(runs)?;
        let mut check = CancelCheck::default();
        while let Some(entry) = merge.entry() {
            check.count(context)?;
            merged.write(entry.key, entry.record)?;
            merge.advance()?;
        }
        merged.finish()
    }

    /// Begins a run, whose entries must come in order.
    pub(crate) fn begin(
        &mut self,
        context: &mut dyn TaskContext,
    ) -> Result<EntryWriter, TaskFailure> {
        let directory = match self.directory.take() {
            Some(directory) => directory,
            None => context.spill_directory()?.to_owned(),
        };
        self.written += 1;
        let path = directory.join(format!("sorted-{}.run", self.written));
        self.directory = Some(directory);
        EntryWriter::create(path, self.chunk_bytes)
    }
}
