//! Aggregation by key: each producer combines what it sees, the consumers combine the rest.

mod aggregate;
mod combine_by_key;
mod combined_input;
mod count;
mod distinct;
mod fold;
mod footprint;
mod held;
mod key_of;
mod sorted_states;
mod state_table;
mod sum;

use std::sync::Arc;

use regrow_runtime::Distribution;

use self::{
    aggregate::Aggregate,
    combine_by_key::CombineByKey,
    combined_input::{CombinedInput, KeyAndResult, Output},
    count::TextCounts,
    distinct::{Distinct, Keys},
    key_of::{TextKey, WholeRecord},
};
pub(crate) use self::{
    count::Count,
    fold::{Fold, Reduce},
    key_of::{BorrowedKey, ComputedKey},
    sum::Sum,
};
pub use self::{key_of::KeyOf, sum::Number};
use crate::{chain::Chain, data_set::DataSet, environment::VertexInput, record::Record};

impl<'env, C: Chain> DataSet<'env, C> {
    /// Combines the records of each key: ends the vertex with what `aggregate` makes of the
    /// records of a task, and begins one that combines that of all tasks, and puts it out by `O`.
    pub(crate) fn combined<K, A, O>(
        self,
        name: &'static str,
        key: K,
        aggregate: A,
    ) -> DataSet<'env, CombinedInput<A, O>>
    where
        K: KeyOf<C::Item>,
        A: Aggregate<C::Item>,
        O: Output<A>,
    {
        let environment = self.environment;
        let (key, aggregate) = (Arc::new(key), Arc::new(aggregate));
        let combining = Arc::clone(&aggregate);
        let producer = self.end(name, move |chain, deployment| {
            let (key, aggregate) = (Arc::clone(&key), Arc::clone(&aggregate));
            chain.task(deployment, CombineByKey::new(deployment, key, aggregate))
        });
        let input = VertexInput { producer, distribution: Distribution::AllToAll };
        DataSet::reading(environment, CombinedInput::new(combining), vec![input])
    }

    /// The same, put out as pairs of key and result.
    pub(crate) fn aggregated<K, A>(
        self,
        name: &'static str,
        key: K,
        aggregate: A,
    ) -> DataSet<'env, impl Chain<Item = (<K::Key as Record>::Owned, A::Result)>>
    where
        K: KeyOf<C::Item>,
        A: Aggregate<C::Item>,
    {
        self.combined::<K, A, KeyAndResult<K::Key, C::Item>>(name, key, aggregate)
    }

    /// Each record once, however often it occurs.
    pub fn distinct(self) -> DataSet<'env, impl Chain<Item = C::Item>> {
        self.combined::<_, _, Keys<C::Item>>("distinct", WholeRecord, Distinct)
    }
}

impl<'env, C: Chain<Item: AsRef<str>>> DataSet<'env, C> {
    /// Counts how often each text occurs. Counts go through the job, not records: each task
    /// counts what it sees before it sends it on.
    pub fn count_by_key(self) -> DataSet<'env, impl Chain<Item = (String, u64)>> {
        self.combined::<_, _, TextCounts>("count_by_key", TextKey, Count)
    }
}

#[cfg(test)]
mod tests;
