//! Counts records.

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

use super::{
    aggregate::{Aggregate, Combining},
    combined_input::Output,
};
use crate::{
    chain::Consume,
    record::{Record, RecordError},
};

/// The number of records; at most `u64::MAX`.
pub(crate) struct Count;

impl Combining for Count {
    type State = u64;

    #[inline]
    fn merge(&self, count: &mut u64, other: u64) {
        *count = count.saturating_add(other);
    }

    #[inline]
    fn write(&self, count: &u64, block: &mut Vec<u8>) -> Result<(), RecordError> {
        count.write(block)
    }

    #[inline]
    fn read(&self, mut bytes: &[u8]) -> Result<u64, RecordError> {
        u64::read(&mut bytes, &mut None).copied()
    }
}

impl<R: ?Sized> Aggregate<R> for Count {
    type Result = u64;

    #[inline]
    fn first(&self, _: &R) -> u64 {
        1
    }

    #[inline]
    fn add(&self, count: &mut u64, _: &R) {
        *count = count.saturating_add(1);
    }

    fn result(&self, count: &mut u64) -> Result<u64, String> {
        Ok(*count)
    }
}

/// Puts out texts with their counts.
#[derive(Default)]
pub(crate) struct TextCounts {
    /// The record that is passed on, kept for its memory.
    record: (String, u64),
}

impl Output<Count> for TextCounts {
    type Item = (String, u64);

    fn put_out<E: Consume<(String, u64)>>(
        &mut self,
        _: &Count,
        (key, count): (&[u8], &mut u64),
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let key = std::str::from_utf8(key).map_err(|error| {
            TaskFailure::task(format!("a key of the counts is not valid UTF-8: {error}"))
        })?;
        self.record.0.clear();
        self.record.0.push_str(key);
        self.record.1 = *count;
        end.consume(&self.record, context)
    }
}
