//! Counts that outgrow memory: sorted runs on disk, merged at the end.

mod run;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
    io,
    path::{Path, PathBuf},
};

use self::run::{RunReader, RunWriter};
use super::key_counter::KeyCounter;

/// Runs that are merged at once: each has a file open and a buffer.
const RUNS_MAX: usize = 64;

/// Sorted runs of (key, count) in the spill directory of an attempt.
#[derive(Default)]
pub(crate) struct SortedCounts {
    runs: Vec<PathBuf>,
    written: u64,
}

impl SortedCounts {
    /// Whether nothing was spilled.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Writes the content of `counter` as a run and clears it.
    pub(crate) fn spill(&mut self, counter: &mut KeyCounter, directory: &Path) -> io::Result<()> {
        if self.runs.len() >= RUNS_MAX {
            self.compact(directory)?;
        }
        let mut run = self.begin(directory)?;
        for (key, count) in counter.sorted() {
            run.write(key, count)?;
        }
        self.runs.push(run.finish()?);
        counter.clear();
        Ok(())
    }

    /// Begins to merge all runs; their disk space is free when the merge is dropped.
    pub(crate) fn merge(&mut self) -> io::Result<Merge> {
        let mut heads = BinaryHeap::with_capacity(self.runs.len());
        for path in self.runs.drain(..) {
            let mut run = RunReader::open(&path)?;
            std::fs::remove_file(&path)?;
            if run.advance()? {
                heads.push(Reverse(run));
            }
        }
        Ok(Merge { heads, key: Vec::new() })
    }

    /// Merges all runs into one.
    fn compact(&mut self, directory: &Path) -> io::Result<()> {
        let mut merged = self.begin(directory)?;
        let mut merge = self.merge()?;
        while let Some((key, count)) = merge.advance()? {
            merged.write(key, count)?;
        }
        self.runs.push(merged.finish()?);
        Ok(())
    }

    fn begin(&mut self, directory: &Path) -> io::Result<RunWriter> {
        self.written += 1;
        RunWriter::create(directory.join(format!("counts-{}.run", self.written)))
    }
}

/// Runs that are being merged.
pub(crate) struct Merge {
    heads: BinaryHeap<Reverse<RunReader>>,
    key: Vec<u8>,
}

impl Merge {
    /// The next key, ascending, with its sum over all runs; none at the end.
    pub(crate) fn advance(&mut self) -> io::Result<Option<(&[u8], u64)>> {
        let Some(Reverse(first)) = self.heads.peek() else { return Ok(None) };
        self.key.clear();
        self.key.extend_from_slice(first.key());
        let mut sum = 0_u64;
        while let Some(mut head) = self.heads.peek_mut() {
            if head.0.key() != self.key {
                break;
            }
            sum = sum.saturating_add(head.0.count());
            if !head.0.advance()? {
                PeekMut::pop(head);
            }
        }
        Ok(Some((&self.key, sum)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn more_runs_than_merge_at_once_give_each_key_once_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut sorted = SortedCounts::default();
        let mut expected = BTreeMap::new();
        for round in 0..2 * RUNS_MAX + 3 {
            let mut counter = KeyCounter::new(u64::MAX);
            for number in (round % 7..200).step_by(3) {
                let key = format!("{number:x} {}", "x".repeat(number % 30));
                counter.add(key.as_bytes(), round as u64).unwrap();
                *expected.entry(key.into_bytes()).or_insert(0) += round as u64;
            }
            sorted.spill(&mut counter, directory.path()).unwrap();
            assert!(counter.is_empty());
        }
        let mut found = Vec::new();
        let mut merge = sorted.merge().unwrap();
        while let Some((key, count)) = merge.advance().unwrap() {
            found.push((key.to_vec(), count));
        }
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
