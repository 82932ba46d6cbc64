//! What waits to be written, and by when.

use std::{collections::VecDeque, time::Duration};

use regrow_runtime::{ChunkedQueue, Flush, JobEvent, Lsn};
use tokio::time::Instant;

use super::Append;

/// A result that somebody looks at is stored within this time.
const SOON: Duration = Duration::from_millis(100);

/// Most bytes of events in one batch, well below what a store takes; more only if one event is
/// larger.
const GATHERED_BYTES_MAX: u64 = 64 << 20;

/// Events that wait to be written.
pub(super) struct WriteBuffer {
    bytes_max: u64,
    interval: Duration,
    /// None is empty.
    gathered: VecDeque<Gathered>,
    bytes: u64,
    upto: Lsn,
    due: Option<Instant>,
}

/// Events of one batch to come.
#[derive(Default)]
struct Gathered {
    events: ChunkedQueue<JobEvent>,
    bytes: u64,
}

/// Events that are written together.
pub(super) struct Batch {
    pub(super) events: ChunkedQueue<JobEvent>,
    /// Number of events of the run before them.
    pub(super) first: Lsn,
    /// The position after them.
    pub(super) upto: Lsn,
}

impl WriteBuffer {
    /// Events are due when there are `bytes_max` of them, or `interval` after the first.
    pub(super) fn new(bytes_max: u64, interval: Duration) -> Self {
        let (gathered, upto) = (VecDeque::new(), Lsn::default());
        Self { bytes_max, interval, gathered, bytes: 0, upto, due: None }
    }

    /// Adds the events of one decision.
    pub(super) fn add(&mut self, append: Append, now: Instant) {
        self.upto = self.upto.max(append.upto);
        for event in append.events {
            self.push(event);
        }
        if self.gathered.is_empty() {
            return;
        }
        let wait = match append.flush {
            _ if self.bytes >= self.bytes_max => Duration::ZERO,
            Flush::Whenever => self.interval,
            Flush::Soon => self.interval.min(SOON),
            Flush::Now => Duration::ZERO,
        };
        let due = now + wait;
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// Adds an event to the newest batch, or begins another one: with a snapshot, so that all
    /// before that batch can be removed.
    fn push(&mut self, event: JobEvent) {
        let bytes = event.approximate_bytes();
        self.bytes += bytes;
        let has_room = |newest: &Gathered| newest.bytes + bytes <= GATHERED_BYTES_MAX;
        if is_snapshot(&event) || !self.gathered.back().is_some_and(has_room) {
            self.gathered.push_back(Gathered::default());
        }
        if let Some(newest) = self.gathered.back_mut() {
            newest.bytes += bytes;
            newest.events.push_back(event);
        }
    }

    /// Adds the events from a snapshot on, due at once; false if there is none.
    pub(super) fn add_from_snapshot(&mut self, append: Append, now: Instant) -> bool {
        let Append { mut events, upto, flush: _ } = append;
        let Some(index) = events.iter().position(is_snapshot) else { return false };
        self.add(Append { events: events.split_off(index), upto, flush: Flush::Now }, now);
        true
    }

    /// When what waits must be written; none if nothing waits.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes what is to be written next. What is left stays due.
    pub(super) fn take(&mut self) -> Option<Batch> {
        let Gathered { events, bytes } = self.gathered.pop_front()?;
        self.bytes -= bytes;
        if self.gathered.is_empty() {
            self.due = None;
        }
        let left: usize = self.gathered.iter().map(|later| later.events.len()).sum();
        let upto = Lsn(self.upto.0.saturating_sub(left as u64));
        let first = Lsn(upto.0.saturating_sub(events.len() as u64));
        Some(Batch { events, first, upto })
    }

    pub(super) fn clear(&mut self) {
        self.gathered.clear();
        self.bytes = 0;
        self.due = None;
    }
}

fn is_snapshot(event: &JobEvent) -> bool {
    matches!(event, JobEvent::Snapshot { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_one_batch_can_take_is_written_in_order() {
        let mut buffer = WriteBuffer::new(1, Duration::from_secs(1));
        let half = || JobEvent::FailureDecided { error: "x".repeat(40 << 20) };
        let append = Append { events: vec![half(), half()], upto: Lsn(9), flush: Flush::Whenever };
        buffer.add(append, Instant::now());
        let uptos = [buffer.take(), buffer.take()].map(|batch| batch.unwrap().upto);
        assert_eq!(uptos, [Lsn(8), Lsn(9)]);
        assert!(buffer.take().is_none() && buffer.due().is_none());
    }
}
