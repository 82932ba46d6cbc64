//! Marks a chain whose functions may make other records of the same input.

use regrow_actors::task::Task;
use regrow_protocol::{TaskDeployment, TaskFailure};
use regrow_runtime::Determinacy;

use crate::chain::{Chain, ChainStart, Consume};

/// A chain that is not determinate, whatever it consists of.
pub(crate) struct Indeterminate<C> {
    input: C,
}

impl<C> Indeterminate<C> {
    pub(crate) fn new(input: C) -> Self {
        Self { input }
    }
}

impl<C: Chain> Chain for Indeterminate<C> {
    type Item = C::Item;

    fn task<E: Consume<C::Item>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        self.input.task(deployment, end)
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        self.input.describe(names);
    }

    fn start(&self) -> ChainStart<'_> {
        self.input.start()
    }

    fn determinacy(&self) -> Determinacy {
        Determinacy::Indeterminate
    }
}
