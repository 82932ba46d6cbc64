//! The producer's half of an aggregation: combines what it sees before it sends it.

use std::{marker::PhantomData, sync::Arc};

use regrow_actors::task::TaskContext;
use regrow_protocol::{TaskDeployment, TaskFailure};

use super::{
    aggregate::Aggregate,
    key_of::KeyOf,
    state_table::{Changed, StateTable},
};
use crate::{chain::Consume, exchange::PartitionWriter, key_table::Key};

/// Combines records by key and writes (key, state), divided by key. A key comes out more than once
/// when memory was short.
pub(crate) struct CombineByKey<K, R: ?Sized, A: Aggregate<R>> {
    key: Arc<K>,
    key_bytes: Vec<u8>,
    combined: Combined<R, A>,
}

/// What the records have become, and where it goes.
struct Combined<R: ?Sized, A: Aggregate<R>> {
    states: StateTable<A>,
    encoded: Vec<u8>,
    writer: PartitionWriter,
    record_type: PhantomData<fn(&R)>,
}

impl<K, R: ?Sized, A: Aggregate<R>> CombineByKey<K, R, A> {
    /// Makes the end of the chain of an attempt whose only output is the states.
    pub(crate) fn new(deployment: &TaskDeployment, key: Arc<K>, aggregate: Arc<A>) -> Self {
        let combined = Combined {
            states: StateTable::new(aggregate, deployment.memory_bytes / 2),
            encoded: Vec::new(),
            writer: PartitionWriter::of(deployment, 0),
            record_type: PhantomData,
        };
        Self { key, key_bytes: Vec::new(), combined }
    }
}

impl<K, R, A> Consume<R> for CombineByKey<K, R, A>
where
    R: ?Sized + 'static,
    K: KeyOf<R>,
    A: Aggregate<R>,
{
    #[inline]
    fn consume(&mut self, record: &R, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let key = Key::new(self.key.key(record, &mut self.key_bytes)?);
        let combined = &mut self.combined;
        match combined.states.change(&key, |aggregate, state| aggregate.add(state, record)) {
            Changed::Done => Ok(()),
            Changed::Overgrown => combined.empty(context),
            Changed::NoState => combined.insert(&key, record, context),
        }
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.combined.empty(context)?;
        self.combined.writer.flush(context)
    }
}

impl<R: ?Sized, A: Aggregate<R>> Combined<R, A> {
    #[cold]
    fn insert(
        &mut self,
        key: &Key<'_>,
        record: &R,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let state = self.states.combining().first(record);
        if !self.states.has_room(key, &state) {
            self.empty(context)?;
        }
        self.states.insert(key, state);
        Ok(())
    }

    #[cold]
    fn empty(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        for (key, hash, state) in self.states.table().iter() {
            self.encoded.clear();
            self.states.combining().write(state, &mut self.encoded)?;
            self.writer.write_keyed(key, hash, &self.encoded, context)?;
        }
        self.states.table_mut().clear();
        Ok(())
    }
}
