//! Where user functions put their records.

use regrow_actors::task::TaskContext;
use regrow_protocol::{Accumulator as Value, TaskFailure};

use crate::{
    accumulators::{Accumulator, Tally},
    chain::Consume,
};

/// Records that are collected before they go on: enough that passing them on costs little.
const BATCH_RECORDS: usize = 256;

/// Collects the records that a user function makes of one record or several, and what it counts.
pub struct Emitter<O> {
    records: Vec<O>,
    tally: Tally,
}

impl<O> Default for Emitter<O> {
    fn default() -> Self {
        Self { records: Vec::new(), tally: Tally::default() }
    }
}

impl<O> Emitter<O> {
    /// Emits a record.
    #[inline]
    pub fn emit(&mut self, record: O) {
        self.records.push(record);
    }

    /// Adds `value` to the sum `name` of the job; the sum saturates.
    #[inline]
    pub fn add(&mut self, name: &str, value: i64) {
        self.tally.count(name, Value::Sum(value));
    }

    /// Notes `value` as a candidate for the greatest value of `name` in the job.
    #[inline]
    pub fn max(&mut self, name: &str, value: i64) {
        self.tally.count(name, Value::Max(value));
    }

    /// Notes `value` as a candidate for the least value of `name` in the job.
    #[inline]
    pub fn min(&mut self, name: &str, value: i64) {
        self.tally.count(name, Value::Min(value));
    }

    /// The value `name` of this task, of a type of the program's own. The values of all tasks are
    /// merged when the program reads the result; all accumulators of a task may take
    /// [`ACCUMULATOR_BYTES_MAX`](crate::ACCUMULATOR_BYTES_MAX) bytes.
    pub fn accumulator<T: Accumulator>(&mut self, name: &str) -> &mut T {
        self.tally.accumulator(name)
    }

    /// Whether there is enough to be passed on: who emits records without an end stops here for a
    /// while.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.records.len() >= BATCH_RECORDS || self.tally.is_too_large()
    }

    /// How many records are collected.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Gives all records to `end`, in order, and forgets them.
    pub(crate) fn pass_on<E: Consume<O>>(
        &mut self,
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        self.tally.check()?;
        for record in self.records.drain(..) {
            end.consume(&record, context)?;
        }
        Ok(())
    }

    /// Gives the attempt what was counted: once, when all records were seen.
    pub(crate) fn hand_over(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.tally.hand_over(context)
    }

    /// Gives `end` the last records and the attempt what was counted.
    pub(crate) fn finish<E: Consume<O>>(
        &mut self,
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        self.pass_on(end, context)?;
        self.hand_over(context)?;
        end.finish(context)
    }
}
