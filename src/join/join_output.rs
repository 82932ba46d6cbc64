//! What becomes of pairs.

use std::{marker::PhantomData, sync::Arc};

use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

use super::row_arena::Rows;
use crate::{cancel_check::CancelCheck, chain::Consume, record::Record};

/// One of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The data set that is joined.
    Left,
    /// The data set that it is joined with.
    Right,
}

/// Takes pairs of rows, as they are in blocks.
pub(super) trait JoinOutput {
    /// Whether left rows without a partner come out too.
    const KEEPS_LEFT: bool;

    /// Takes a row of `side` and its partners.
    fn pairs(
        &mut self,
        side: Side,
        row: &[u8],
        partners: Rows<'_>,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure>;

    /// Takes a left row without a partner.
    fn alone(&mut self, left: &[u8], context: &mut dyn TaskContext) -> Result<(), TaskFailure>;
}

/// What a join makes of records.
pub(super) trait PairFunction<L: ?Sized, R: ?Sized>: Send + Sync + 'static {
    /// What comes out.
    type Item: Record;

    /// Whether left records without a partner come out too.
    const KEEPS_LEFT: bool;

    /// Makes a record; none of a left record alone in an inner join.
    fn item(&self, left: &L, right: Option<&R>) -> Option<Self::Item>;
}

/// The function of an inner join.
pub(super) struct InnerPairs<O, F> {
    function: F,
    output: PhantomData<fn() -> O>,
}

/// The function of a left join.
pub(super) struct LeftPairs<O, F> {
    function: F,
    output: PhantomData<fn() -> O>,
}

impl<O, F> InnerPairs<O, F> {
    pub(super) const fn new(function: F) -> Self {
        Self { function, output: PhantomData }
    }
}

impl<O, F> LeftPairs<O, F> {
    pub(super) const fn new(function: F) -> Self {
        Self { function, output: PhantomData }
    }
}

impl<L, R, O, F> PairFunction<L, R> for InnerPairs<O, F>
where
    L: ?Sized,
    R: ?Sized,
    O: Record,
    F: Fn(&L, &R) -> O + Send + Sync + 'static,
{
    type Item = O;
    const KEEPS_LEFT: bool = false;

    #[inline]
    fn item(&self, left: &L, right: Option<&R>) -> Option<O> {
        Some((self.function)(left, right?))
    }
}

impl<L, R, O, F> PairFunction<L, R> for LeftPairs<O, F>
where
    L: ?Sized,
    R: ?Sized,
    O: Record,
    F: Fn(&L, Option<&R>) -> O + Send + Sync + 'static,
{
    type Item = O;
    const KEEPS_LEFT: bool = true;

    #[inline]
    fn item(&self, left: &L, right: Option<&R>) -> Option<O> {
        Some((self.function)(left, right))
    }
}

/// Reads the records of pairs and passes on what a function makes of them.
pub(super) struct Mapped<L: ?Sized, R: ?Sized, P, E> {
    function: Arc<P>,
    end: E,
    check: CancelCheck,
    types: PhantomData<fn(&L, &R)>,
}

impl<L, R, P, E> Mapped<L, R, P, E>
where
    L: Record + ?Sized,
    R: Record + ?Sized,
    P: PairFunction<L, R>,
    E: Consume<P::Item>,
{
    pub(super) fn new(function: Arc<P>, end: E) -> Self {
        Self { function, end, check: CancelCheck::default(), types: PhantomData }
    }

    /// All pairs were given.
    pub(super) fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.end.finish(context)
    }

    #[inline]
    fn pass_on(
        &mut self,
        left: &L,
        right: Option<&R>,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        self.check.count(context)?;
        match self.function.item(left, right) {
            Some(item) => self.end.consume(&item, context),
            None => Ok(()),
        }
    }
}

impl<L, R, P, E> JoinOutput for Mapped<L, R, P, E>
where
    L: Record + ?Sized,
    R: Record + ?Sized,
    P: PairFunction<L, R>,
    E: Consume<P::Item>,
{
    const KEEPS_LEFT: bool = P::KEEPS_LEFT;

    #[inline]
    fn pairs(
        &mut self,
        side: Side,
        mut row: &[u8],
        partners: Rows<'_>,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let (mut left_slot, mut right_slot) = (None, None);
        match side {
            Side::Left => {
                let left = L::read(&mut row, &mut left_slot)?;
                for mut right in partners {
                    self.pass_on(left, Some(R::read(&mut right, &mut right_slot)?), context)?;
                }
            }
            Side::Right => {
                let right = R::read(&mut row, &mut right_slot)?;
                for mut left in partners {
                    self.pass_on(L::read(&mut left, &mut left_slot)?, Some(right), context)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn alone(&mut self, mut left: &[u8], context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let mut slot = None;
        self.pass_on(L::read(&mut left, &mut slot)?, None, context)
    }
}
