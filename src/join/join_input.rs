//! The start of a vertex that joins two others.

use std::{marker::PhantomData, sync::Arc};

use regrow_actors::task::{Step, Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};

use super::{
    hash_join::HashJoin,
    join_output::{Mapped, PairFunction, Side},
    row::Row,
};
use crate::{
    chain::{Chain, ChainStart, Consume},
    exchange::read_input,
    record::Record,
    spill::read_entry,
};

/// The start of a vertex that joins its first input, the left one, with its second.
pub(super) struct JoinInput<L: ?Sized, R: ?Sized, P> {
    name: &'static str,
    function: Arc<P>,
    types: PhantomData<fn(&L, &R)>,
}

impl<L: ?Sized, R: ?Sized, P> JoinInput<L, R, P> {
    /// Makes one that is called `name` for people.
    pub(super) fn new(name: &'static str, function: P) -> Self {
        Self { name, function: Arc::new(function), types: PhantomData }
    }
}

impl<L, R, P> Chain for JoinInput<L, R, P>
where
    L: Record + ?Sized,
    R: Record + ?Sized,
    P: PairFunction<L, R>,
{
    type Item = P::Item;

    fn task<E: Consume<P::Item>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        let output = Mapped::<L, R, P, E>::new(Arc::clone(&self.function), end);
        let join = HashJoin::new(output, deployment.memory_bytes / 2);
        Ok(Box::new(JoinTask { join: Some(join) }))
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        names.push(self.name);
    }

    fn start(&self) -> ChainStart<'_> {
        ChainStart::Edges
    }
}

struct JoinTask<L: ?Sized, R: ?Sized, P, E> {
    /// There until it has run.
    join: Option<HashJoin<Mapped<L, R, P, E>>>,
}

impl<L, R, P, E> Task for JoinTask<L, R, P, E>
where
    L: Record + ?Sized,
    R: Record + ?Sized,
    P: PairFunction<L, R>,
    E: Consume<P::Item>,
{
    fn run(&mut self, context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
        let Some(mut join) = self.join.take() else { return Ok(Step::Finished) };
        for (input, side) in [(1, Side::Right), (0, Side::Left)] {
            read_input(input, context, |rest, context| {
                let (key, record) = read_entry(rest).ok_or_else(cut_off)?;
                join.push(side, &Row::new(key, record), context)
            })?;
        }
        join.finish(context)?.finish(context)?;
        Ok(Step::Finished)
    }
}

fn cut_off() -> TaskFailure {
    TaskFailure::task("a block of keyed records is cut off in its middle")
}
