//! The `map_partition` operator: a function with a state of its own per attempt.

use std::{marker::PhantomData, sync::Arc};

use regrow_actors::task::{Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};
use regrow_runtime::Determinacy;

use crate::{
    chain::{Chain, ChainStart, Consume},
    operators::Emitter,
    record::Record,
};

/// A function over all records of one attempt. A new one is made for each attempt, so that what it
/// keeps begins afresh when the task runs again.
pub trait PartitionFunction<I: ?Sized>: Send + 'static {
    /// What it makes.
    type Output: Record;

    /// Takes a record.
    fn record(&mut self, record: &I, out: &mut Emitter<Self::Output>);

    /// All records were given.
    fn end(&mut self, out: &mut Emitter<Self::Output>) {
        let _ = out;
    }
}

/// A chain with a `map_partition` behind it.
pub(crate) struct MapPartition<C, P, N> {
    input: C,
    make: Arc<N>,
    function: PhantomData<fn() -> P>,
}

impl<C, P, N> MapPartition<C, P, N> {
    pub(crate) fn new(input: C, make: N) -> Self {
        Self { input, make: Arc::new(make), function: PhantomData }
    }
}

impl<C, P, N> Chain for MapPartition<C, P, N>
where
    C: Chain,
    P: PartitionFunction<C::Item, Output: Sized>,
    N: Fn() -> P + Send + Sync + 'static,
{
    type Item = P::Output;

    fn task<E: Consume<P::Output>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        // Made on the thread of the attempt, as a task is.
        let function = (self.make)();
        let consumer = MapPartitionConsumer { function, emitter: Emitter::default(), end };
        self.input.task(deployment, consumer)
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        self.input.describe(names);
        names.push("map_partition");
    }

    fn start(&self) -> ChainStart<'_> {
        self.input.start()
    }

    fn determinacy(&self) -> Determinacy {
        self.input.determinacy()
    }
}

struct MapPartitionConsumer<P, O, E> {
    function: P,
    emitter: Emitter<O>,
    end: E,
}

impl<I, P, E> Consume<I> for MapPartitionConsumer<P, P::Output, E>
where
    I: ?Sized,
    P: PartitionFunction<I>,
    P::Output: Sized,
    E: Consume<P::Output>,
{
    #[inline]
    fn consume(&mut self, record: &I, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.function.record(record, &mut self.emitter);
        if self.emitter.is_full() { self.emitter.pass_on(&mut self.end, context) } else { Ok(()) }
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.function.end(&mut self.emitter);
        self.emitter.finish(&mut self.end, context)
    }
}
