//! The `flat_map` operator: a function from a text to any number of texts.

use std::sync::Arc;

use regrow_actors::task::{Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};

use crate::{
    chain::{Chain, ChainInput, Consume},
    emitter::Emitter,
};

/// Bytes that are collected before they go on: large enough that passing them on costs little,
/// small enough that they stay in the nearest cache.
const BATCH_BYTES: usize = 16 << 10;

/// A chain with a `flat_map` behind it.
pub struct FlatMap<C, F> {
    input: C,
    function: Arc<F>,
}

impl<C, F> FlatMap<C, F> {
    pub(crate) fn new(input: C, function: F) -> Self {
        Self { input, function: Arc::new(function) }
    }
}

impl<C, F> Chain for FlatMap<C, F>
where
    C: Chain<Item = String>,
    F: Fn(&str, &mut Emitter) + Send + Sync + 'static,
{
    type Item = String;

    fn task<E: Consume<String>>(&self, deployment: &TaskDeployment, end: E) -> Box<dyn Task> {
        let function = Arc::clone(&self.function);
        let consumer = FlatMapConsumer { function, emitter: Emitter::default(), end };
        self.input.task(deployment, consumer)
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        self.input.describe(names);
        names.push("flat_map");
    }

    fn input(&self) -> ChainInput<'_> {
        self.input.input()
    }
}

struct FlatMapConsumer<F, E> {
    function: Arc<F>,
    emitter: Emitter,
    end: E,
}

impl<F, E: Consume<String>> FlatMapConsumer<F, E> {
    fn pass_on(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let end = &mut self.end;
        self.emitter.drain(|record| end.consume(record, context))
    }
}

impl<F, E> Consume<String> for FlatMapConsumer<F, E>
where
    F: Fn(&str, &mut Emitter) + Send + Sync + 'static,
    E: Consume<String>,
{
    fn consume(&mut self, record: &str, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        (self.function)(record, &mut self.emitter);
        if self.emitter.bytes() < BATCH_BYTES {
            return Ok(());
        }
        self.pass_on(context)
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.pass_on(context)?;
        self.end.finish(context)
    }
}
