//! The `filter` operator: keeps some records.

use std::sync::Arc;

use regrow_actors::task::{Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};
use regrow_runtime::Determinacy;

use crate::chain::{Chain, ChainStart, Consume};

/// A chain with a `filter` behind it.
pub(crate) struct Filter<C, F> {
    input: C,
    keep: Arc<F>,
}

impl<C, F> Filter<C, F> {
    pub(crate) fn new(input: C, keep: F) -> Self {
        Self { input, keep: Arc::new(keep) }
    }
}

impl<C, F> Chain for Filter<C, F>
where
    C: Chain,
    F: Fn(&C::Item) -> bool + Send + Sync + 'static,
{
    type Item = C::Item;

    fn task<E: Consume<C::Item>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        self.input.task(deployment, FilterConsumer { keep: Arc::clone(&self.keep), end })
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        self.input.describe(names);
        names.push("filter");
    }

    fn start(&self) -> ChainStart<'_> {
        self.input.start()
    }

    fn determinacy(&self) -> Determinacy {
        self.input.determinacy()
    }
}

struct FilterConsumer<F, E> {
    keep: Arc<F>,
    end: E,
}

impl<I, F, E> Consume<I> for FilterConsumer<F, E>
where
    I: ?Sized,
    F: Fn(&I) -> bool + Send + Sync + 'static,
    E: Consume<I>,
{
    #[inline]
    fn consume(&mut self, record: &I, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        if (self.keep)(record) { self.end.consume(record, context) } else { Ok(()) }
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.end.finish(context)
    }
}
