//! Puts what was read of a log together and marks what is missing.

use crate::{BatchPosition, Log, LogBatch, LogDamage, LogPart, LogPlace, frame::Frame};

/// Takes frames and damages in the order of the log.
pub(crate) struct LogAssembler {
    log: Log,
    start: u64,
    next_sequence: u64,
    segment: u64,
    ends_damaged: bool,
    /// Bytes that may still be taken.
    room: usize,
    /// The batch for which there was no room; nothing from it on is taken.
    more: Option<LogPlace>,
}

impl LogAssembler {
    /// Expects the log to begin at sequence number `start`: what lies before was removed.
    pub(crate) fn new(start: u64) -> Self {
        Self::part(start, usize::MAX)
    }

    /// Takes what begins at sequence number `start` and has no more than `bytes_max` bytes, or is one
    /// batch.
    pub(crate) fn part(start: u64, bytes_max: usize) -> Self {
        Self {
            log: Log::default(),
            start,
            next_sequence: start,
            segment: 0,
            ends_damaged: false,
            room: bytes_max,
            more: None,
        }
    }

    /// Whether nothing more is taken.
    pub(crate) fn is_full(&self) -> bool {
        self.more.is_some()
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
        let is_next = frame.sequence >= self.next_sequence;
        if is_next && frame.batch.len() > self.room && !self.log.batches.is_empty() {
            self.more.get_or_insert(LogPlace { segment, sequence: frame.sequence });
        }
        if self.is_full() {
            return;
        }
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
        self.room = self.room.saturating_sub(frame.batch.len());
        self.log.batches.push(LogBatch {
            position: BatchPosition { segment, sequence: frame.sequence, checksum: frame.checksum },
            epoch: frame.epoch,
            follows_damage: self.log.damage.is_some(),
            bytes: frame.batch.to_vec(),
        });
    }

    /// Takes a damage where the next batch should be. The first one is reported.
    pub(crate) fn damage(&mut self, segment: u64, offset: Option<u64>, reason: String) {
        if self.is_full() {
            return;
        }
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

    /// The part, of a log that was removed before `start` and is known to have had at least
    /// `sequence_end` batches.
    pub(crate) fn finish_part(self, start: u64, sequence_end: u64) -> LogPart {
        let next = self.more;
        // What is missing at the end of the log is no matter of this part if it ends before.
        let log = self.finish(if next.is_some() { 0 } else { sequence_end });
        LogPart { start, log, next }
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
    fn a_part_ends_before_the_batch_that_has_no_room() {
        let mut assembler = LogAssembler::part(4, 2);
        for sequence in 3..9 {
            assembler.batch(sequence / 2, None, frame(sequence));
        }
        assembler.damage(4, None, "behind the part".to_owned());
        let part = assembler.finish_part(2, 9);
        let sequences: Vec<u64> = part.log.batches.iter().map(|it| it.position.sequence).collect();
        assert_eq!((sequences, part.log.damage), (vec![4, 5], None));
        assert_eq!((part.start, part.next), (2, Some(LogPlace { segment: 3, sequence: 6 })));
    }

    #[test]
    fn a_part_has_one_batch_at_least_and_what_is_wrong_before_the_next() {
        let mut assembler = LogAssembler::part(0, 0);
        assembler.damage(0, None, "flipped".to_owned());
        assembler.batch(0, None, frame(1));
        assembler.batch(0, None, frame(2));
        let part = assembler.finish_part(0, 3);
        assert_eq!((part.log.batches.len(), part.next.unwrap().sequence), (1, 2));
        assert!(part.log.damage.is_some() && part.log.batches[0].follows_damage);
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
