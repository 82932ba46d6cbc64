//! Turns the batches of a stored log into the events that count.

use regrow_protocol::Epoch;

use crate::{EventBatch, JobEvent, LogPosition, Lsn, decode_batch, with_causes};

/// A batch as the store gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBatch<'a> {
    /// Where it stands.
    pub position: LogPosition,
    /// Whether the store found damage or a gap between it and the valid batches before.
    pub follows_damage: bool,
    /// What was appended.
    pub bytes: &'a [u8],
}

/// What counts of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadLog {
    /// The events to replay, in order. What a damage took is missing; the event after it is then a
    /// [`JobEvent::Snapshot`].
    pub events: Vec<JobEvent>,
    /// Number of events of the run before the next one that is recorded.
    pub next: Lsn,
    /// What was found wrong, if anything.
    pub damage: Option<LogDefect>,
}

/// Something wrong in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDefect {
    /// What and where, for people.
    pub text: String,
    /// Whether nothing is missing for it: a later snapshot stands for all before it, or its writer
    /// never counted what is damaged. If not, the log ends before it, and whoever goes on must
    /// first record a snapshot.
    pub covered: bool,
}

/// Reads a log: `batches` in their order, and what the store itself found wrong, if anything.
///
/// A batch counts iff its first event is the next one of those that count, or it holds a snapshot
/// (then from there on). Beyond that:
/// - a batch of an epoch below one that wrote before it is void, and so is one that a later epoch
///   had not read when it began (its first event says how many it had): rule 3.10;
/// - events that a writer stored again, not knowing that they had been stored, count once;
/// - what cannot be decoded, and a missing event, is damage. What follows it counts only under the
///   rule above: from a snapshot on, or if nothing that was ever read lies between (rules 3.7 and
///   5.12).
pub fn read_log(batches: &[StoredBatch<'_>], found: Option<&str>) -> ReadLog {
    let mut reader = LogReader::default();
    for batch in batches {
        reader.add(batch);
    }
    reader.finish(found)
}

#[derive(Default)]
struct LogReader {
    events: Vec<JobEvent>,
    next: u64,
    kept: Vec<KeptBatch>,
    /// The highest that wrote.
    epoch: Epoch,
    defect: Option<LogDefect>,
    /// Batches after the defect that do not count.
    left_out: u64,
    /// Whether a batch counts although the store found damage before it.
    resumed: bool,
}

/// How to undo a batch that counts.
struct KeptBatch {
    epoch: Epoch,
    events_before: usize,
    next_before: u64,
}

impl LogReader {
    fn add(&mut self, stored: &StoredBatch<'_>) {
        let batch = match decode_batch(stored.bytes) {
            Ok(batch) => batch,
            Err(error) => return self.reject(stored.position, &with_causes(&error)),
        };
        if batch.epoch < self.epoch {
            return;
        }
        self.void_unread(&batch);
        self.epoch = batch.epoch;
        let position = stored.position;
        let first = batch.first.0;
        if first == self.next {
            self.keep(batch, 0);
        } else if self.repeats(&batch) {
            let known = usize::try_from(self.next - first).unwrap_or(usize::MAX);
            self.keep(batch, known);
        } else if let Some(index) = snapshot(&batch.events) {
            self.keep_from_snapshot(batch, index, position);
        } else {
            self.reject(position, &self.gap(first));
        }
        self.resumed |= stored.follows_damage && self.is_intact();
    }

    /// Whether `batch` begins with events that its writer stored before.
    fn repeats(&self, batch: &EventBatch) -> bool {
        let own = self.kept.iter().rev().take_while(|kept| kept.epoch == batch.epoch);
        let begin = own.last().map(|kept| kept.next_before);
        batch.first.0 < self.next && begin.is_some_and(|begin| begin <= batch.first.0)
    }

    /// Drops batches of older epochs that the writer of `batch` had not read.
    fn void_unread(&mut self, batch: &EventBatch) {
        while self.next > batch.first.0 {
            let Some(last) = self.kept.pop_if(|last| last.epoch < batch.epoch) else { return };
            self.events.truncate(last.events_before);
            self.next = last.next_before;
        }
    }

    fn keep(&mut self, batch: EventBatch, skip: usize) {
        let end = batch.first.0.saturating_add(batch.events.len() as u64);
        self.kept.push(KeptBatch {
            epoch: batch.epoch,
            events_before: self.events.len(),
            next_before: self.next,
        });
        self.events.extend(batch.events.into_iter().skip(skip));
        self.next = self.next.max(end);
        if let Some(defect) = &mut self.defect {
            defect.covered = true;
        }
    }

    /// A log that begins with a snapshot was compacted; anywhere else, events are missing that the
    /// snapshot stands for.
    fn keep_from_snapshot(&mut self, batch: EventBatch, index: usize, position: LogPosition) {
        if !self.kept.is_empty() && self.is_intact() {
            self.note(position, &self.gap(batch.first.0));
        }
        self.next = batch.first.0.saturating_add(index as u64);
        self.keep(batch, index);
    }

    fn is_intact(&self) -> bool {
        self.defect.as_ref().is_none_or(|defect| defect.covered)
    }

    fn reject(&mut self, position: LogPosition, reason: &str) {
        if self.is_intact() {
            self.note(position, reason);
        }
        self.left_out += 1;
    }

    fn note(&mut self, position: LogPosition, reason: &str) {
        let LogPosition { segment, sequence, checksum: _ } = position;
        let text = format!("segment {segment}, batch {sequence}: {reason}");
        self.defect = Some(LogDefect { text, covered: false });
        self.left_out = 0;
    }

    fn gap(&self, first: u64) -> String {
        format!("event {} should follow, and event {first} does", self.next)
    }

    fn finish(mut self, found: Option<&str>) -> ReadLog {
        let intact = self.is_intact();
        if let Some(found) = found {
            let text = match &self.defect {
                Some(defect) if !defect.covered => format!("{found}; then {}", defect.text),
                Some(_) | None => found.to_owned(),
            };
            self.defect = Some(LogDefect { text, covered: intact && self.resumed });
        }
        let left_out = self.left_out;
        if let Some(defect) = self.defect.as_mut().filter(|_| left_out > 0) {
            defect.text = format!("{}; {left_out} batches from there on do not count", defect.text);
        }
        ReadLog { events: self.events, next: Lsn(self.next), damage: self.defect }
    }
}

fn snapshot(events: &[JobEvent]) -> Option<usize> {
    events.iter().position(|event| matches!(event, JobEvent::Snapshot { .. }))
}

#[cfg(test)]
mod tests;
