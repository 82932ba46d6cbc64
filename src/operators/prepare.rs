//! Does something before a task begins.

use std::sync::Arc;

use regrow_actors::task::Task;
use regrow_protocol::{TaskDeployment, TaskFailure};
use regrow_runtime::Determinacy;

use crate::chain::{Chain, ChainStart, Consume};

/// A chain whose tasks begin when a function has found all in order; records pass by it.
pub(crate) struct Prepare<C, F> {
    input: C,
    function: Arc<F>,
}

impl<C, F> Prepare<C, F> {
    /// Puts `function` before `input`; what it says is wrong fails the job.
    pub(crate) fn new(input: C, function: F) -> Self {
        Self { input, function: Arc::new(function) }
    }
}

impl<C, F> Chain for Prepare<C, F>
where
    C: Chain,
    F: Fn() -> Result<(), String> + Send + Sync + 'static,
{
    type Item = C::Item;

    fn task<E: Consume<Self::Item>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        (self.function)().map_err(TaskFailure::unrecoverable)?;
        self.input.task(deployment, end)
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        self.input.describe(names);
    }

    fn start(&self) -> ChainStart<'_> {
        self.input.start()
    }

    fn determinacy(&self) -> Determinacy {
        self.input.determinacy()
    }
}
