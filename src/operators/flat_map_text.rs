//! The `flat_map_text` operator: a function from a record to any number of texts.

use std::sync::Arc;

use regrow_actors::task::{Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};
use regrow_runtime::Determinacy;

use crate::{
    chain::{Chain, ChainStart, Consume},
    operators::TextEmitter,
};

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

impl<I, F, E> Consume<I> for FlatMapTextConsumer<F, E>
where
    I: ?Sized,
    F: Fn(&I, &mut TextEmitter) + Send + Sync + 'static,
    E: Consume<str>,
{
    fn consume(&mut self, record: &I, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        (self.function)(record, &mut self.emitter);
        if self.emitter.is_full() { self.emitter.pass_on(&mut self.end, context) } else { Ok(()) }
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.emitter.finish(&mut self.end, context)
    }
}
