//! The directory of one run.
//!
//! ```text
//! claim-<term>-<life>    an empty file: its name is the claim of an epoch
//! start-<sequence>       an empty file: batches before this number were removed
//! segment-<segment>.log  frames
//! ```
//! Claims are removed with the whole directory only. A directory that is being removed is first
//! renamed to `removed-<run id>`, so that a run is there whole or not at all.

use std::{
    fs,
    fs::File,
    path::{Path, PathBuf},
};

use regrow_protocol::{Epoch, RunId};

use super::segment::{self, Cut, SegmentWriter, Standing};
use crate::{
    BatchPosition, Log, LogPart, LogPlace, StoreError,
    durable::{self, Tried},
    frame,
    log_assembler::LogAssembler,
};

const CLAIM: &str = "claim-";
const START: &str = "start-";
const SEGMENT: &str = "segment-";
const SEGMENT_END: &str = ".log";
const REMOVED: &str = "removed-";

/// The files of one run, which need not exist.
pub(super) struct RunDirectory {
    run: RunId,
    runs: PathBuf,
    path: PathBuf,
}

/// What was read, and where writing goes on.
pub(super) struct ReadLog {
    pub(super) log: Log,
    pub(super) next_sequence: u64,
    pub(super) next_segment: u64,
    segments: Vec<u64>,
    torn: Option<Cut>,
}

impl RunDirectory {
    pub(super) fn new(runs: &Path, run: RunId) -> Self {
        Self { run, runs: runs.to_owned(), path: runs.join(run.to_string()) }
    }

    /// The highest epoch that was claimed.
    pub(super) fn highest_claim(&self) -> Result<Option<Epoch>, StoreError> {
        Ok(durable::names(&self.path)?.iter().filter_map(|name| parse_claim(name)).max())
    }

    /// Claims an epoch.
    pub(super) fn claim(&self, epoch: Epoch) -> Result<(), StoreError> {
        durable::create_directory(&self.path)?;
        let name = format!("{CLAIM}{:020}-{:010}", epoch.term, epoch.life);
        durable::create_marker(&self.path.join(name))
    }

    /// Makes a segment; its name is durable.
    pub(super) fn create_segment(&self, segment: u64) -> Result<SegmentWriter, StoreError> {
        let writer = SegmentWriter::create(self.segment(segment), segment)?;
        durable::sync_directory(&self.path)?;
        Ok(writer)
    }

    /// Reads all segments, one at a time.
    pub(super) fn read(&self) -> Result<ReadLog, StoreError> {
        let names = durable::names(&self.path)?;
        let segments = numbers(&names, SEGMENT, SEGMENT_END);
        let start = numbers(&names, START, "").last().copied().unwrap_or(0);
        let newest = self.newest_with_bytes(&segments)?;
        let mut assembler = LogAssembler::new(start);
        let mut torn = None;
        for segment in &segments {
            let path = self.segment(*segment);
            let bytes = segment::read(&path)?;
            let standing =
                if newest == Some(*segment) { Standing::Newest } else { Standing::Earlier };
            let cut = segment::scan(self.run, *segment, &bytes, standing, &mut assembler);
            if let Some(bytes) = cut {
                torn = Some(Cut { path, bytes });
            }
        }
        // The number of a batch that cannot be read is not given to another one.
        let unreadable = assembler.ends_damaged() && torn.is_none();
        let first = if start > 0 { start + 1 } else { 0 };
        let next_sequence = first.max(assembler.next_sequence() + u64::from(unreadable));
        let log = assembler.finish(first);
        let next_segment = segments.last().map_or(0, |last| last + 1);
        Ok(ReadLog { log, next_sequence, next_segment, segments, torn })
    }

    /// Reads a part, one segment at a time, and none before the place.
    pub(super) fn read_part(
        &self,
        from: LogPlace,
        bytes_max: usize,
    ) -> Result<LogPart, StoreError> {
        let names = durable::names(&self.path)?;
        let segments = numbers(&names, SEGMENT, SEGMENT_END);
        let start = numbers(&names, START, "").last().copied().unwrap_or(0);
        let newest = self.newest_with_bytes(&segments)?;
        let mut assembler = LogAssembler::part(start.max(from.sequence), bytes_max);
        for segment in segments.into_iter().filter(|segment| *segment >= from.segment) {
            let bytes = segment::read(&self.segment(segment))?;
            let standing =
                if newest == Some(segment) { Standing::Newest } else { Standing::Earlier };
            segment::scan(self.run, segment, &bytes, standing, &mut assembler);
            if assembler.is_full() {
                break;
            }
        }
        Ok(assembler.finish_part(start, if start > 0 { start + 1 } else { 0 }))
    }

    /// Cuts an incomplete last batch off and makes all that was read durable.
    pub(super) fn make_durable(&self, read: &ReadLog) -> Result<(), StoreError> {
        if let Some(cut) = &read.torn {
            cut.carry_out()?;
        }
        for segment in &read.segments {
            let path = self.segment(*segment);
            File::open(&path).and_then(|file| file.sync_data()).tried("sync", &path)?;
        }
        durable::sync_directory(&self.path)?;
        durable::sync_directory(&self.runs)
    }

    /// Refuses a position at which that batch does not stand.
    pub(super) fn check_at(&self, position: BatchPosition) -> Result<(), StoreError> {
        let path = self.segment(position.segment);
        let bytes = durable::read_file(&path)?.unwrap_or_default();
        let at = frame::find(self.run, &bytes, 0, position.sequence);
        frame::check_at(self.run, position, at.map(|at| &bytes[at..]))
    }

    /// Removes what lies before a batch. Its number is durable first: from then on what lies
    /// before counts as removed, whether it is still there or not.
    pub(super) fn remove_before(&self, position: BatchPosition) -> Result<(), StoreError> {
        let names = durable::names(&self.path)?;
        let starts = numbers(&names, START, "");
        if starts.last().is_none_or(|start| *start < position.sequence) {
            durable::create_marker(&self.start(position.sequence))?;
        }
        for start in starts.iter().filter(|start| **start < position.sequence) {
            durable::remove_file(&self.start(*start))?;
        }
        for segment in numbers(&names, SEGMENT, SEGMENT_END) {
            if segment < position.segment {
                durable::remove_file(&self.segment(segment))?;
            }
        }
        durable::sync_directory(&self.path)
    }

    /// Removes the directory.
    pub(super) fn remove(&self) -> Result<(), StoreError> {
        if !self.path.is_dir() {
            return Ok(());
        }
        let removed = self.runs.join(format!("{REMOVED}{}", self.run));
        fs::rename(&self.path, &removed).tried("rename", &self.path)?;
        durable::sync_directory(&self.runs)?;
        fs::remove_dir_all(&removed).tried("remove", &removed)?;
        durable::sync_directory(&self.runs)
    }

    fn newest_with_bytes(&self, segments: &[u64]) -> Result<Option<u64>, StoreError> {
        for segment in segments.iter().rev() {
            let path = self.segment(*segment);
            if fs::metadata(&path).tried("read size of", &path)?.len() > 0 {
                return Ok(Some(*segment));
            }
        }
        Ok(None)
    }

    fn segment(&self, segment: u64) -> PathBuf {
        self.path.join(format!("{SEGMENT}{segment:020}{SEGMENT_END}"))
    }

    fn start(&self, sequence: u64) -> PathBuf {
        self.path.join(format!("{START}{sequence:020}"))
    }
}

/// Ends removals that a killed process began.
pub(super) fn remove_leftovers(runs: &Path) -> Result<(), StoreError> {
    for name in durable::names(runs)? {
        if name.starts_with(REMOVED) {
            let path = runs.join(name);
            fs::remove_dir_all(&path).tried("remove", &path)?;
        }
    }
    Ok(())
}

fn parse_claim(name: &str) -> Option<Epoch> {
    let (term, life) = name.strip_prefix(CLAIM)?.split_once('-')?;
    Some(Epoch::new(term.parse().ok()?, life.parse().ok()?))
}

fn numbers(names: &[String], begin: &str, end: &str) -> Vec<u64> {
    let number = |name: &String| name.strip_prefix(begin)?.strip_suffix(end)?.parse().ok();
    names.iter().filter_map(number).collect()
}
