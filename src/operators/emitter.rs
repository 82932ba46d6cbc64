//! Where user functions put their records.

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

use crate::chain::Consume;

/// Records that are collected before they go on: enough that passing them on costs little.
const BATCH_RECORDS: usize = 256;

/// Collects the records that a user function makes of one record or several.
pub struct Emitter<O> {
    records: Vec<O>,
}

impl<O> Default for Emitter<O> {
    fn default() -> Self {
        Self { records: Vec::new() }
    }
}

impl<O> Emitter<O> {
    /// Emits a record.
    #[inline]
    pub fn emit(&mut self, record: O) {
        self.records.push(record);
    }

    /// Whether there is enough to be passed on: who emits records without an end stops here for a
    /// while.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.records.len() >= BATCH_RECORDS
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
        for record in self.records.drain(..) {
            end.consume(&record, context)?;
        }
        Ok(())
    }
}
