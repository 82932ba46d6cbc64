//! Reads an input of an attempt, record by record.

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

/// Reads all of input number `input`: `take` takes one record after the other off the front of what
/// is left of a block.
#[inline]
pub(crate) fn read_input(
    input: usize,
    context: &mut dyn TaskContext,
    mut take: impl FnMut(&mut &[u8], &mut dyn TaskContext) -> Result<(), TaskFailure>,
) -> Result<(), TaskFailure> {
    let mut block = Vec::new();
    while context.read_block(input, &mut block)? {
        if context.is_cancelled() {
            return Err(TaskFailure::Cancelled);
        }
        let mut rest = block.as_slice();
        while !rest.is_empty() {
            take(&mut rest, context)?;
        }
    }
    Ok(())
}
