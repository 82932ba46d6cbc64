//! Puts what was read of a log together and marks what is missing.

use crate::{BatchPosition, Log, LogBatch, LogDamage, frame::Frame};

/// Takes frames and damages in the order of the log.
pub(crate) struct LogAssembler {
    log: Log,
    start: u64,
    next_sequence: u64,
    segment: u64,
    ends_damaged: bool,
}

impl LogAssembler {
    /// Expects the log to begin at sequence number `start`: what lies before was removed.
    pub(crate) fn new(start: u64) -> Self {
        Self { log: Log::default(), start, next_sequence: start, segment: 0, ends_damaged: false }
    }

    /// The number that the next batch must have.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Whether nothing valid came after a damage.
    pub(crate) fn ends_damaged(&self) -> bool {
        self.ends_damaged
    }

    /// Takes a valid frame.
    pub(crate) fn batch(&mut self, segment: u64, offset: Option<u64>, frame: Frame<'_>) {
        self.segment = segment;
        self.ends_damaged = false;
        if self.start > 0 && frame.sequence <= self.start && self.log.batches.is_empty() {
            // What is damaged before this batch was removed with all that lies before the start.
            self.log.damage = None;
        }
        if frame.sequence < self.start {
            return;
        }
        if frame.sequence < self.next_sequence {
            let reason = format!("batch {} is there twice", frame.sequence);
            self.damage(segment, offset, reason);
            return;
        }
        if frame.sequence > self.next_sequence {
            self.damage(segment, offset, missing(self.next_sequence, frame.sequence));
            self.ends_damaged = false;
        }
        self.next_sequence = frame.sequence.saturating_add(1);
        self.log.batches.push(LogBatch {
            position: BatchPosition { segment, sequence: frame.sequence, checksum: frame.checksum },
            epoch: frame.epoch,
            follows_damage: self.log.damage.is_some(),
            bytes: frame.batch.to_vec(),
        });
    }

    /// Takes a damage where the next batch should be. The first one is reported.
    pub(crate) fn damage(&mut self, segment: u64, offset: Option<u64>, reason: String) {
        self.segment = segment;
        self.ends_damaged = true;
        if self.log.damage.is_none() {
            let sequence = self.next_sequence;
            self.log.damage = Some(LogDamage { segment, sequence, offset, reason });
        }
    }

    /// The log, which is known to have had at least `sequence_end` batches.
    pub(crate) fn finish(mut self, sequence_end: u64) -> Log {
        if self.next_sequence < sequence_end {
            self.damage(self.segment, None, missing(self.next_sequence, sequence_end));
        }
        self.log
    }
}

fn missing(from: u64, end: u64) -> String {
    if from + 1 == end {
        return format!("batch {from} is missing");
    }
    format!("batches {from} to {} are missing", end - 1)
}

#[cfg(test)]
mod tests {
    use regrow_protocol::Epoch;

    use super::*;

    fn frame(sequence: u64) -> Frame<'static> {
        Frame { epoch: Epoch::new(1, 0), sequence, checksum: 0, batch: b"x" }
    }

    fn assemble(start: u64, sequences: &[u64], end: u64) -> Log {
        let mut assembler = LogAssembler::new(start);
        for sequence in sequences {
            assembler.batch(0, None, frame(*sequence));
        }
        assembler.finish(end)
    }

    #[test]
    fn removed_batches_are_no_gap() {
        let log = assemble(2, &[0, 1, 2, 3], 4);
        assert_eq!(log.batches.len(), 2);
        assert_eq!(log.damage, None);
    }

    #[test]
    fn log_6_batches_behind_a_gap_are_marked() {
        let log = assemble(0, &[0, 1, 4, 5], 6);
        let marks: Vec<bool> = log.batches.iter().map(|batch| batch.follows_damage).collect();
        assert_eq!(marks, [false, false, true, true]);
        let damage = log.damage.unwrap();
        assert_eq!((damage.sequence, damage.reason.as_str()), (2, "batches 2 to 3 are missing"));
    }

    #[test]
    fn a_log_that_lost_its_end_says_so() {
        let damage = assemble(0, &[0, 1], 3).damage.unwrap();
        assert_eq!((damage.sequence, damage.reason.as_str()), (2, "batch 2 is missing"));
    }

    #[test]
    fn a_damage_among_removed_batches_is_none() {
        let mut assembler = LogAssembler::new(2);
        assembler.damage(0, None, "flipped".to_owned());
        assembler.batch(0, None, frame(2));
        assert_eq!(assembler.finish(3).damage, None);
    }

    #[test]
    fn a_damage_of_the_first_batch_that_counts_is_reported() {
        let mut assembler = LogAssembler::new(2);
        assembler.batch(0, None, frame(1));
        assembler.damage(0, None, "flipped".to_owned());
        assembler.batch(0, None, frame(3));
        let log = assembler.finish(4);
        assert_eq!(log.damage.unwrap().sequence, 2);
        assert!(log.batches[0].follows_damage);
    }

    #[test]
    fn a_log_that_lost_all_says_so() {
        assert_eq!(assemble(5, &[], 6).damage.unwrap().sequence, 5);
    }

    #[test]
    fn a_batch_that_is_there_twice_counts_once() {
        let log = assemble(0, &[0, 0], 1);
        assert_eq!(log.batches.len(), 1);
        assert!(log.damage.is_some());
    }
}
