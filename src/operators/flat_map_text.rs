//! The `flat_map_text` operator: a function from a record to any number of texts.

use std::sync::Arc;

use regrow_actors::task::{Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};
use regrow_runtime::Determinacy;

use crate::{
    chain::{Chain, ChainStart, Consume},
    operators::TextEmitter,
};

/// Bytes that are collected before they go on: large enough that passing them on costs little,
/// small enough that they stay in the nearest cache.
const BATCH_BYTES: usize = 16 << 10;

/// A chain with a `flat_map_text` behind it.
pub(crate) struct FlatMapText<C, F> {
    input: C,
    function: Arc<F>,
}

impl<C, F> FlatMapText<C, F> {
    pub(crate) fn new(input: C, function: F) -> Self {
        Self { input, function: Arc::new(function) }
    }
}

impl<C, F> Chain for FlatMapText<C, F>
where
    C: Chain,
    F: Fn(&C::Item, &mut TextEmitter) + Send + Sync + 'static,
{
    type Item = str;

    fn task<E: Consume<str>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        let function = Arc::clone(&self.function);
        let consumer = FlatMapTextConsumer { function, emitter: TextEmitter::default(), end };
        self.input.task(deployment, consumer)
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

struct FlatMapTextConsumer<F, E> {
    function: Arc<F>,
    emitter: TextEmitter,
    end: E,
}

impl<F, E: Consume<str>> FlatMapTextConsumer<F, E> {
    fn pass_on(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let end = &mut self.end;
        self.emitter.drain(|record| end.consume(record, context))
    }
}

impl<I, F, E> Consume<I> for FlatMapTextConsumer<F, E>
where
    I: ?Sized,
    F: Fn(&I, &mut TextEmitter) + Send + Sync + 'static,
    E: Consume<str>,
{
    fn consume(&mut self, record: &I, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        (self.function)(record, &mut self.emitter);
        if self.emitter.is_too_large() {
            // It fails the attempt.
            return self.emitter.hand_over(context);
        }
        if self.emitter.bytes() < BATCH_BYTES {
            return Ok(());
        }
        self.pass_on(context)
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.pass_on(context)?;
        self.emitter.hand_over(context)?;
        self.end.finish(context)
    }
}
