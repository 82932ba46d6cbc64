//! The consumer's half of an aggregation: combines the states of all producers.

use std::{marker::PhantomData, sync::Arc};

use regrow_actors::task::{Step, Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};

use super::{
    aggregate::{Aggregate, Combining},
    sorted_states::SortedStates,
    state_table::{Changed, StateTable},
};
use crate::{
    cancel_check::CancelCheck,
    chain::{Chain, ChainStart, Consume},
    exchange::read_input,
    key_table::Key,
    record::Record,
    spill::read_entry,
};

/// The start of a vertex that reads the states of another one.
pub(crate) struct CombinedInput<C, O> {
    combining: Arc<C>,
    output: PhantomData<fn() -> O>,
}

/// What an aggregation puts out per key.
pub(crate) trait Output<C: Combining>: Default + Send + 'static {
    /// The records.
    type Item: Record + ?Sized;

    /// Passes on the record of a key and its state, which is not used again.
    fn put_out<E: Consume<Self::Item>>(
        &mut self,
        combining: &C,
        state: (&[u8], &mut C::State),
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure>;
}

impl<C, O> CombinedInput<C, O> {
    pub(crate) const fn new(combining: Arc<C>) -> Self {
        Self { combining, output: PhantomData }
    }
}

impl<C: Combining, O: Output<C>> Chain for CombinedInput<C, O> {
    type Item = O::Item;

    fn task<E: Consume<Self::Item>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        let memory_bytes = deployment.memory_bytes / 2;
        Ok(Box::new(CombinedTask {
            states: StateTable::new(Arc::clone(&self.combining), memory_bytes),
            spilled: SortedStates::new(Arc::clone(&self.combining), memory_bytes),
            put_out: PutOut { output: O::default(), end, check: CancelCheck::default() },
        }))
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        names.push("combine");
    }

    fn start(&self) -> ChainStart<'_> {
        ChainStart::Edges
    }
}

struct CombinedTask<C: Combining, O, E> {
    states: StateTable<C>,
    spilled: SortedStates<C>,
    put_out: PutOut<O, E>,
}

/// What stands behind the states.
struct PutOut<O, E> {
    output: O,
    end: E,
    check: CancelCheck,
}

impl<C: Combining, O: Output<C>, E: Consume<O::Item>> Task for CombinedTask<C, O, E> {
    fn run(&mut self, context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
        read_input(0, context, |rest, context| self.add(rest, context))?;
        self.pass_on(context)?;
        self.put_out.end.finish(context)?;
        Ok(Step::Finished)
    }
}

impl<C: Combining, O: Output<C>, E: Consume<O::Item>> CombinedTask<C, O, E> {
    /// Takes one (key, state) off the front of a block.
    fn add(&mut self, block: &mut &[u8], context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let Some((key, state)) = read_entry(block) else {
            return Err(TaskFailure::task("a block of states is cut off in its middle"));
        };
        let key = Key::new(key);
        let mut state = Some(self.states.combining().read(state)?);
        let changed = self.states.change(&key, |combining, before| {
            if let Some(state) = state.take() {
                combining.merge(before, state);
            }
        });
        let is_full = match changed {
            Changed::Done => false,
            Changed::Overgrown => true,
            Changed::NoState => {
                state.as_ref().is_some_and(|state| !self.states.has_room(&key, state))
            }
        };
        if is_full {
            self.spilled.spill(&mut self.states, context)?;
        }
        if let Some(state) = state {
            self.states.insert(&key, state);
        }
        Ok(())
    }

    fn pass_on(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let combining = Arc::clone(self.states.combining());
        if self.spilled.is_empty() {
            for entry in self.states.table_mut().sorted_mut() {
                self.put_out.pass_on(&*combining, entry, context)?;
            }
            return Ok(());
        }
        if !self.states.table().is_empty() {
            self.spilled.spill(&mut self.states, context)?;
        }
        // The merge needs the memory that the table had.
        self.states = StateTable::new(Arc::clone(&combining), 0);
        let mut merge = self.spilled.merge(context)?;
        while let Some(mut state) = merge.advance(context)? {
            self.put_out.pass_on(&*combining, (merge.key(), &mut state), context)?;
        }
        Ok(())
    }
}

impl<O, E> PutOut<O, E> {
    fn pass_on<C: Combining>(
        &mut self,
        combining: &C,
        state: (&[u8], &mut C::State),
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure>
    where
        O: Output<C>,
        E: Consume<O::Item>,
    {
        self.check.count(context)?;
        self.output.put_out(combining, state, &mut self.end, context)
    }
}

/// Puts out keys of type `K` with what an aggregation of records of type `R` made of them.
pub(crate) struct KeyAndResult<K: ?Sized, R: ?Sized> {
    types: PhantomData<fn(&K, &R)>,
}

impl<K: ?Sized, R: ?Sized> Default for KeyAndResult<K, R> {
    fn default() -> Self {
        Self { types: PhantomData }
    }
}

impl<K, R, A> Output<A> for KeyAndResult<K, R>
where
    K: Record + ?Sized,
    R: ?Sized + 'static,
    A: Aggregate<R>,
{
    type Item = (K::Owned, A::Result);

    fn put_out<E: Consume<Self::Item>>(
        &mut self,
        aggregate: &A,
        (key, state): (&[u8], &mut A::State),
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let key = owned::<K>(key)?;
        let result = aggregate.result(state).map_err(TaskFailure::unrecoverable)?;
        end.consume(&(key, result), context)
    }
}

/// The key that was written as `bytes`.
fn owned<K: Record + ?Sized>(mut bytes: &[u8]) -> Result<K::Owned, TaskFailure> {
    let mut slot = None;
    <K::Owned as Record>::read(&mut bytes, &mut slot)?;
    slot.ok_or_else(|| TaskFailure::unrecoverable("a key was read and is not there"))
}
