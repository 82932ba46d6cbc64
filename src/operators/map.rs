//! The `map` operator: a function from a record to a record.

use std::{marker::PhantomData, sync::Arc};

use regrow_actors::task::{Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};
use regrow_runtime::Determinacy;

use crate::{
    chain::{Chain, ChainStart, Consume},
    record::Record,
};

/// A chain with a `map` behind it.
pub(crate) struct Map<C, O, F> {
    input: C,
    function: Arc<F>,
    output: PhantomData<fn() -> O>,
}

impl<C, O, F> Map<C, O, F> {
    pub(crate) fn new(input: C, function: F) -> Self {
        Self { input, function: Arc::new(function), output: PhantomData }
    }
}

impl<C, O, F> Chain for Map<C, O, F>
where
    C: Chain,
    O: Record,
    F: Fn(&C::Item) -> O + Send + Sync + 'static,
{
    type Item = O;

    fn task<E: Consume<O>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        let function = Arc::clone(&self.function);
        self.input.task(deployment, MapConsumer { function, output: PhantomData, end })
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        self.input.describe(names);
        names.push("map");
    }

    fn start(&self) -> ChainStart<'_> {
        self.input.start()
    }

    fn determinacy(&self) -> Determinacy {
        self.input.determinacy()
    }
}

struct MapConsumer<O, F, E> {
    function: Arc<F>,
    output: PhantomData<fn() -> O>,
    end: E,
}

impl<I, O, F, E> Consume<I> for MapConsumer<O, F, E>
where
    I: ?Sized,
    O: 'static,
    F: Fn(&I) -> O + Send + Sync + 'static,
    E: Consume<O>,
{
    #[inline]
    fn consume(&mut self, record: &I, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.end.consume(&(self.function)(record), context)
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.end.finish(context)
    }
}
