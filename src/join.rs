//! Joins of two data sets by key.
//!
//! Both sides are divided by the hash of the key, so that equal keys meet in one task. There the
//! right side is kept in memory and the left one goes by. What does not fit is divided among files,
//! again and again by other hashes; a key that does not fit alone is joined in passes.

mod hash_join;
mod join_input;
mod join_output;
mod key_partition;
mod keyed_forward;
mod marks;
mod partition_join;
mod row;
mod row_arena;
mod row_table;
mod spilled_side;

use std::{marker::PhantomData, sync::Arc};

use regrow_runtime::Distribution;

use self::{
    join_input::JoinInput,
    join_output::{InnerPairs, LeftPairs},
    keyed_forward::KeyedForward,
};
use crate::{
    aggregation::{BorrowedKey, ComputedKey, KeyOf},
    chain::Chain,
    data_set::DataSet,
    environment::VertexInput,
    record::Record,
};

/// Pairs only: a record without a partner is left out.
pub enum Inner {}

/// Each left record, if it has no partner then without one.
pub enum LeftOuter {}

/// Two data sets that are joined, once it is said [on](Self::on) which keys.
#[must_use = "a join is computed when its pairs are mapped"]
pub struct Join<'env, C, D, T> {
    left: DataSet<'env, C>,
    right: DataSet<'env, D>,
    kind: PhantomData<T>,
}

/// Two data sets that are joined on keys, once it is said what becomes of each pair.
#[must_use = "a join is computed when its pairs are mapped"]
pub struct JoinOn<'env, C, D, KL, KR, T> {
    join: Join<'env, C, D, T>,
    left_key: KL,
    right_key: KR,
}

impl<'env, C: Chain> DataSet<'env, C> {
    /// Joins this data set with `right`: all pairs of records with equal keys.
    ///
    /// ```no_run
    /// # fn build(env: &regrow::Environment) {
    /// let sites = env.read_text("sites").map(|line| (line.to_owned(), line.len()));
    /// let visits = env.read_text("visits").map(|line| (line.to_owned(), 1_u64));
    /// visits
    ///     .join(sites)
    ///     .on_ref(|visit| &visit.0[..], |site| &site.0[..])
    ///     .map(|visit, site| (visit.0.clone(), site.1))
    ///     .write_csv("pairs");
    /// # }
    /// ```
    /// The right side is kept in memory as far as it fits: the smaller one should be on the right.
    pub fn join<D: Chain>(self, right: DataSet<'env, D>) -> Join<'env, C, D, Inner> {
        Join { left: self, right, kind: PhantomData }
    }

    /// Joins this data set with `right`: all pairs of records with equal keys, and the left records
    /// that have no partner.
    pub fn left_join<D: Chain>(self, right: DataSet<'env, D>) -> Join<'env, C, D, LeftOuter> {
        Join { left: self, right, kind: PhantomData }
    }
}

impl<'env, C: Chain, D: Chain, T> Join<'env, C, D, T> {
    /// On keys that functions make of records.
    pub fn on<K, FL, FR>(
        self,
        left_key: FL,
        right_key: FR,
    ) -> JoinOn<'env, C, D, impl KeyOf<C::Item, Key = K>, impl KeyOf<D::Item, Key = K>, T>
    where
        K: Record,
        FL: Fn(&C::Item) -> K + Send + Sync + 'static,
        FR: Fn(&D::Item) -> K + Send + Sync + 'static,
    {
        let (left_key, right_key) = (ComputedKey::new(left_key), ComputedKey::new(right_key));
        JoinOn { join: self, left_key, right_key }
    }

    /// On keys that functions find in records: `|record| &record.name[..]`.
    pub fn on_ref<K, FL, FR>(
        self,
        left_key: FL,
        right_key: FR,
    ) -> JoinOn<'env, C, D, impl KeyOf<C::Item, Key = K>, impl KeyOf<D::Item, Key = K>, T>
    where
        K: Record + ?Sized,
        FL: for<'a> Fn(&'a C::Item) -> &'a K + Send + Sync + 'static,
        FR: for<'a> Fn(&'a D::Item) -> &'a K + Send + Sync + 'static,
    {
        let (left_key, right_key) = (BorrowedKey::new(left_key), BorrowedKey::new(right_key));
        JoinOn { join: self, left_key, right_key }
    }
}

impl<'env, C, D, KL, KR> JoinOn<'env, C, D, KL, KR, Inner>
where
    C: Chain,
    D: Chain,
    KL: KeyOf<C::Item>,
    KR: KeyOf<D::Item>,
{
    /// Makes a record of each pair.
    pub fn map<O, F>(self, function: F) -> DataSet<'env, impl Chain<Item = O>>
    where
        O: Record,
        F: Fn(&C::Item, &D::Item) -> O + Send + Sync + 'static,
    {
        let (environment, inputs) = self.inputs();
        let chain = JoinInput::<C::Item, D::Item, _>::new("join", InnerPairs::new(function));
        DataSet::reading(environment, chain, inputs)
    }
}

impl<'env, C, D, KL, KR> JoinOn<'env, C, D, KL, KR, LeftOuter>
where
    C: Chain,
    D: Chain,
    KL: KeyOf<C::Item>,
    KR: KeyOf<D::Item>,
{
    /// Makes a record of each pair, and of each left record that has no partner.
    pub fn map<O, F>(self, function: F) -> DataSet<'env, impl Chain<Item = O>>
    where
        O: Record,
        F: Fn(&C::Item, Option<&D::Item>) -> O + Send + Sync + 'static,
    {
        let (environment, inputs) = self.inputs();
        let chain = JoinInput::<C::Item, D::Item, _>::new("left_join", LeftPairs::new(function));
        DataSet::reading(environment, chain, inputs)
    }
}

impl<'env, C, D, KL, KR, T> JoinOn<'env, C, D, KL, KR, T>
where
    C: Chain,
    D: Chain,
    KL: KeyOf<C::Item>,
    KR: KeyOf<D::Item>,
{
    /// Ends the vertices of both sides.
    fn inputs(self) -> (&'env crate::Environment, Vec<VertexInput>) {
        let Self { join: Join { left, right, .. }, left_key, right_key } = self;
        let environment = left.environment;
        (environment, vec![left.by_key(left_key), right.by_key(right_key)])
    }
}

impl<C: Chain> DataSet<'_, C> {
    /// Ends the vertex; who reads it gets its records divided by key.
    fn by_key<K: KeyOf<C::Item>>(self, key: K) -> VertexInput {
        let key = Arc::new(key);
        let producer = self.end("by_key", move |chain, deployment| {
            chain.task(deployment, KeyedForward::new(deployment, Arc::clone(&key)))
        });
        VertexInput { producer, distribution: Distribution::AllToAll }
    }
}

#[cfg(test)]
mod tests;
