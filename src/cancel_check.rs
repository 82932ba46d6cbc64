//! Looks at the cancel flag now and then.

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

/// Records between two looks.
const RECORDS_PER_LOOK: u32 = 4096;

/// Counts records, for loops that may be long, and looks at the cancel flag at the first one and
/// once per 4096.
#[derive(Debug, Default)]
pub(crate) struct CancelCheck {
    records_to_look: u32,
}

impl CancelCheck {
    /// Counts a record.
    #[inline]
    pub(crate) fn count(&mut self, context: &dyn TaskContext) -> Result<(), TaskFailure> {
        if self.records_to_look > 0 {
            self.records_to_look -= 1;
            return Ok(());
        }
        self.records_to_look = RECORDS_PER_LOOK - 1;
        if context.is_cancelled() { Err(TaskFailure::Cancelled) } else { Ok(()) }
    }
}
