//! Sums numbers.

use std::{any::type_name, marker::PhantomData};

use super::aggregate::{Aggregate, Combining};
use crate::record::{Record, RecordError};

/// A number that can be summed: `u64`, `i64` or `f64`.
pub trait Number: Record + serde::Serialize + serde::de::DeserializeOwned {
    /// What holds a sum of numbers without a loss on the way.
    type Total: Record + Copy;

    /// The sum of this number.
    fn total(self) -> Self::Total;

    /// The sum of two sums.
    fn plus(total: Self::Total, other: Self::Total) -> Self::Total;

    /// The sum as a number; none if there is no such number.
    fn of(total: Self::Total) -> Option<Self>;
}

impl Number for u64 {
    type Total = u128;

    fn total(self) -> u128 {
        self.into()
    }

    #[inline]
    fn plus(total: u128, other: u128) -> u128 {
        // 2^64 numbers would be needed to come near the end.
        total.saturating_add(other)
    }

    fn of(total: u128) -> Option<Self> {
        total.try_into().ok()
    }
}

impl Number for i64 {
    type Total = i128;

    fn total(self) -> i128 {
        self.into()
    }

    #[inline]
    fn plus(total: i128, other: i128) -> i128 {
        total.saturating_add(other)
    }

    fn of(total: i128) -> Option<Self> {
        total.try_into().ok()
    }
}

impl Number for f64 {
    type Total = f64;

    fn total(self) -> f64 {
        self
    }

    #[inline]
    fn plus(total: f64, other: f64) -> f64 {
        total + other
    }

    fn of(total: f64) -> Option<Self> {
        Some(total)
    }
}

/// The sum of what a function makes of each record.
pub(crate) struct Sum<N, F> {
    number: F,
    number_type: PhantomData<fn() -> N>,
}

impl<N, F> Sum<N, F> {
    pub(crate) const fn new(number: F) -> Self {
        Self { number, number_type: PhantomData }
    }
}

impl<N: Number, F: Send + Sync + 'static> Combining for Sum<N, F> {
    type State = N::Total;

    #[inline]
    fn merge(&self, total: &mut N::Total, other: N::Total) {
        *total = N::plus(*total, other);
    }

    fn write(&self, total: &N::Total, block: &mut Vec<u8>) -> Result<(), RecordError> {
        total.write(block)
    }

    fn read(&self, mut bytes: &[u8]) -> Result<N::Total, RecordError> {
        <N::Total>::read(&mut bytes, &mut None).copied()
    }
}

impl<R, N, F> Aggregate<R> for Sum<N, F>
where
    R: ?Sized,
    N: Number,
    F: Fn(&R) -> N + Send + Sync + 'static,
{
    type Result = N;

    #[inline]
    fn first(&self, record: &R) -> N::Total {
        (self.number)(record).total()
    }

    #[inline]
    fn add(&self, total: &mut N::Total, record: &R) {
        *total = N::plus(*total, (self.number)(record).total());
    }

    fn result(&self, total: &mut N::Total) -> Result<N, String> {
        N::of(*total).ok_or_else(|| {
            format!("the sum is no {0}: sum f64, or smaller parts", type_name::<N>())
        })
    }
}
