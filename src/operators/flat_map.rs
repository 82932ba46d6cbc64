//! The `flat_map` operator: a function from a record to any number of records.

use std::{marker::PhantomData, sync::Arc};

use regrow_actors::task::{Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};
use regrow_runtime::Determinacy;

use crate::{
    chain::{Chain, ChainStart, Consume},
    operators::Emitter,
    record::Record,
};

/// A chain with a `flat_map` behind it.
pub(crate) struct FlatMap<C, O, F> {
    input: C,
    function: Arc<F>,
    output: PhantomData<fn() -> O>,
}

impl<C, O, F> FlatMap<C, O, F> {
    pub(crate) fn new(input: C, function: F) -> Self {
        Self { input, function: Arc::new(function), output: PhantomData }
    }
}

impl<C, O, F> Chain for FlatMap<C, O, F>
where
    C: Chain,
    O: Record,
    F: Fn(&C::Item, &mut Emitter<O>) + Send + Sync + 'static,
{
    type Item = O;

    fn task<E: Consume<O>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        let function = Arc::clone(&self.function);
        self.input.task(deployment, FlatMapConsumer { function, emitter: Emitter::default(), end })
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        self.input.describe(names);
        names.push("flat_map");
    }

    fn start(&self) -> ChainStart<'_> {
        self.input.start()
    }

    fn determinacy(&self) -> Determinacy {
        self.input.determinacy()
    }
}

struct FlatMapConsumer<O, F, E> {
    function: Arc<F>,
    emitter: Emitter<O>,
    end: E,
}

impl<I, O, F, E> Consume<I> for FlatMapConsumer<O, F, E>
where
    I: ?Sized,
    O: Send + 'static,
    F: Fn(&I, &mut Emitter<O>) + Send + Sync + 'static,
    E: Consume<O>,
{
    #[inline]
    fn consume(&mut self, record: &I, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        (self.function)(record, &mut self.emitter);
        if self.emitter.is_full() { self.emitter.pass_on(&mut self.end, context) } else { Ok(()) }
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.emitter.finish(&mut self.end, context)
    }
}
