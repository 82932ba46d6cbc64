//! The end of a vertex whose records go to who has their keys.

use std::{marker::PhantomData, sync::Arc};

use regrow_actors::task::TaskContext;
use regrow_protocol::{TaskDeployment, TaskFailure};

use crate::{
    aggregation::KeyOf, chain::Consume, exchange::PartitionWriter, key_table::Key, record::Record,
};

/// Writes (key, record), divided by key.
pub(super) struct KeyedForward<K, R: ?Sized> {
    key: Arc<K>,
    key_bytes: Vec<u8>,
    record_bytes: Vec<u8>,
    writer: PartitionWriter,
    record_type: PhantomData<fn(&R)>,
}

impl<K, R: ?Sized> KeyedForward<K, R> {
    /// Makes the end of an attempt with a single output.
    pub(super) fn new(deployment: &TaskDeployment, key: Arc<K>) -> Self {
        Self {
            key,
            key_bytes: Vec::new(),
            record_bytes: Vec::new(),
            writer: PartitionWriter::of(deployment, 0),
            record_type: PhantomData,
        }
    }
}

impl<K: KeyOf<R>, R: Record + ?Sized> Consume<R> for KeyedForward<K, R> {
    #[inline]
    fn consume(&mut self, record: &R, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let key = self.key.key(record, &mut self.key_bytes)?;
        self.record_bytes.clear();
        record.write(&mut self.record_bytes)?;
        self.writer.write_keyed(key, Key::new(key).hash(), &self.record_bytes, context)
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.writer.flush(context)
    }
}
