//! Looks at the cancel flag now and then.

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

/// Records between two looks.
const RECORDS_PER_LOOK: u32 = 4096;

/// Counts records, for loops that may be long, and looks at the cancel flag once per 4096.
#[derive(Debug, Default)]
pub(crate) struct CancelCheck {
    unchecked: u32,
}

impl CancelCheck {
    /// Counts a record.
    #[inline]
    pub(crate) fn count(&mut self, context: &dyn TaskContext) -> Result<(), TaskFailure> {
        self.unchecked += 1;
        if self.unchecked < RECORDS_PER_LOOK {
            return Ok(());
        }
        self.unchecked = 0;
        if context.is_cancelled() { Err(TaskFailure::Cancelled) } else { Ok(()) }
    }
}
