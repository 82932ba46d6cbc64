//! The start of a vertex that sorts what it reads.

use std::{marker::PhantomData, sync::Arc};

use regrow_actors::task::{Step, Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};

use super::{entry::Entry, key_function::KeyFunction, sort_key::KeyParts, sorter::Sorter};
use crate::{
    cancel_check::CancelCheck,
    chain::{Chain, ChainStart, Consume},
    exchange::read_input,
    record::Record,
};

/// The part of a task's memory that sorting takes.
const MEMORY_SHARE: u64 = 2;

/// Memory for sorting at least, whatever was granted: with less, each handful of records would be a
/// file.
const SORT_BYTES_MIN: u64 = 64 << 10;

/// The start of a vertex whose tasks read ranges of records, and sort them.
pub(super) struct SortedInput<R: ?Sized, K> {
    key_function: Arc<K>,
    record_type: PhantomData<fn(&R)>,
}

impl<R: ?Sized, K> SortedInput<R, K> {
    pub(super) fn new(key_function: Arc<K>) -> Self {
        Self { key_function, record_type: PhantomData }
    }
}

impl<R: Record + ?Sized, K: KeyFunction<R>> Chain for SortedInput<R, K> {
    type Item = R;

    fn task<E: Consume<R>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        Ok(Box::new(SortTask {
            key_function: Arc::clone(&self.key_function),
            memory_bytes: (deployment.memory_bytes / MEMORY_SHARE).max(SORT_BYTES_MIN),
            end,
            record_type: PhantomData,
        }))
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        names.push("sort");
    }

    fn start(&self) -> ChainStart<'_> {
        ChainStart::Edges
    }
}

struct SortTask<R: ?Sized, K, E> {
    key_function: Arc<K>,
    memory_bytes: u64,
    end: E,
    record_type: PhantomData<fn(&R)>,
}

impl<R: Record + ?Sized, K: KeyFunction<R>, E: Consume<R>> Task for SortTask<R, K, E> {
    fn run(&mut self, context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
        let mut sorted = self.read(context)?.finish(context)?;
        let mut check = CancelCheck::default();
        while let Some(mut bytes) = sorted.next()? {
            check.count(context)?;
            let mut slot = None;
            self.end.consume(R::read(&mut bytes, &mut slot)?, context)?;
        }
        self.end.finish(context)?;
        Ok(Step::Finished)
    }
}

impl<R: Record + ?Sized, K: KeyFunction<R>, E> SortTask<R, K, E> {
    fn read(&self, context: &mut dyn TaskContext) -> Result<Sorter, TaskFailure> {
        let mut sorter = Sorter::new(self.memory_bytes);
        let mut key = KeyParts::default();
        read_input(0, context, |rest, context| {
            let from_here = *rest;
            let mut slot = None;
            let record = R::read(rest, &mut slot)?;
            key.clear();
            self.key_function.add_parts(record, &mut key);
            let record = &from_here[..from_here.len() - rest.len()];
            sorter.add(Entry { key: key.form(), record }, context)
        })?;
        Ok(sorter)
    }
}
