//! A task that counts for nothing but its output.

use regrow_actors::task::{Step, Task, TaskContext};
use regrow_protocol::{Accumulators, TaskFailure};

/// A task over a sample of what another vertex reads: what its functions count is counted there.
pub(super) struct Uncounted(pub(super) Box<dyn Task>);

impl Task for Uncounted {
    fn run(&mut self, context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
        let step = self.0.run(context)?;
        if step == Step::Finished {
            *context.accumulators() = Accumulators::default();
        }
        Ok(step)
    }
}
