//! Keeps each record once.

use std::marker::PhantomData;

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

use super::{
    aggregate::{Aggregate, Combining},
    combined_input::Output,
};
use crate::{
    chain::Consume,
    record::{Record, RecordError},
};

/// Nothing but that there is such a record.
pub(crate) struct Distinct;

impl Combining for Distinct {
    type State = ();

    fn merge(&self, (): &mut (), (): ()) {}

    fn write(&self, (): &(), _: &mut Vec<u8>) -> Result<(), RecordError> {
        Ok(())
    }

    fn read(&self, _: &[u8]) -> Result<(), RecordError> {
        Ok(())
    }
}

impl<R: ?Sized> Aggregate<R> for Distinct {
    type Result = ();

    fn first(&self, _: &R) {}

    fn add(&self, (): &mut (), _: &R) {}

    fn result(&self, (): &mut ()) -> Result<(), String> {
        Ok(())
    }
}

/// Puts out keys.
pub(crate) struct Keys<K: ?Sized> {
    key_type: PhantomData<fn(&K)>,
}

impl<K: ?Sized> Default for Keys<K> {
    fn default() -> Self {
        Self { key_type: PhantomData }
    }
}

impl<K: Record + ?Sized> Output<Distinct> for Keys<K> {
    type Item = K;

    fn put_out<E: Consume<K>>(
        &mut self,
        _: &Distinct,
        (mut key, ()): (&[u8], &mut ()),
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let mut slot = None;
        end.consume(K::read(&mut key, &mut slot)?, context)
    }
}
