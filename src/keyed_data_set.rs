//! A data set whose records have keys.

use std::cmp::Ordering;

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    aggregation::{BorrowedKey, ComputedKey, Count, Fold, KeyOf, Number, Reduce, Sum},
    chain::Chain,
    data_set::DataSet,
    record::Record,
};

/// The key that a [`KeyedDataSet`] puts out: owned.
type OwnedKey<K, R> = <<K as KeyOf<R>>::Key as Record>::Owned;

/// A data set whose records have keys, to be aggregated: each aggregation gives one record per key,
/// `(key, result)`.
///
/// Keys are equal when they are written alike: `0.0` and `-0.0` are two keys, and a map with another
/// order of iteration is another key. Each task combines what it sees before it sends it on.
#[must_use = "a keyed data set is computed when it is aggregated"]
pub struct KeyedDataSet<'env, C, K> {
    records: DataSet<'env, C>,
    key: K,
}

impl<'env, C: Chain> DataSet<'env, C> {
    /// Gives records keys that `key` makes: numbers, texts, tuples of them.
    ///
    /// ```
    /// # use regrow::*;
    /// # fn build(env: &Environment) -> Written {
    /// env.read_text("lines").key_by(|line| line.len() as u64).count().write_csv("lengths")
    /// # }
    /// ```
    pub fn key_by<K, F>(self, key: F) -> KeyedDataSet<'env, C, impl KeyOf<C::Item, Key = K>>
    where
        K: Record,
        F: Fn(&C::Item) -> K + Send + Sync + 'static,
    {
        KeyedDataSet { records: self, key: ComputedKey::new(key) }
    }

    /// Gives records keys that `key` finds in them: `|record| &record.url[..]`. That costs no
    /// allocation, other than [`key_by`](Self::key_by) with a key that is cloned.
    ///
    /// ```
    /// # use regrow::*;
    /// # fn build(env: &Environment) -> Written {
    /// env.read_csv::<(String, u64)>("visits.csv")
    ///     .key_by_ref(|(user, _)| &user[..])
    ///     .sum(|(_, bytes)| *bytes)
    ///     .write_csv("bytes-of-users")
    /// # }
    /// ```
    pub fn key_by_ref<K, F>(self, key: F) -> KeyedDataSet<'env, C, impl KeyOf<C::Item, Key = K>>
    where
        K: Record + ?Sized,
        F: for<'a> Fn(&'a C::Item) -> &'a K + Send + Sync + 'static,
    {
        KeyedDataSet { records: self, key: BorrowedKey::new(key) }
    }
}

impl<'env, C: Chain, K: KeyOf<C::Item>> KeyedDataSet<'env, C, K> {
    /// Counts the records of each key.
    pub fn count(self) -> DataSet<'env, impl Chain<Item = (OwnedKey<K, C::Item>, u64)>> {
        self.records.aggregated("count", self.key, Count)
    }

    /// Sums what `number` makes of each record: `u64`, `i64` or `f64`.
    ///
    /// A sum that its type cannot hold fails the job; what it is on the way does not matter. Sums of
    /// `f64` may differ in their last digits between runs, by the order in which records come.
    pub fn sum<N, F>(self, number: F) -> DataSet<'env, impl Chain<Item = (OwnedKey<K, C::Item>, N)>>
    where
        N: Number,
        F: Fn(&C::Item) -> N + Send + Sync + 'static,
    {
        self.records.aggregated("sum", self.key, Sum::new(number))
    }

    /// Puts records into a state, which begins as `initial`, by `add`; and the states of several
    /// tasks into one by `merge`.
    ///
    /// States of different keys go to disk where memory is short, the state of a single key does
    /// not: it must stay below half the memory of a task.
    ///
    /// The mean length of lines by their first letter:
    /// ```
    /// # use regrow::*;
    /// # fn build(env: &Environment) -> Written {
    /// env.read_text("lines")
    ///     .key_by(|line| line.chars().next())
    ///     .fold(
    ///         (0, 0),
    ///         |(bytes, lines), line| {
    ///             *bytes += line.len();
    ///             *lines += 1;
    ///         },
    ///         |(bytes, lines), other: (usize, usize)| {
    ///             *bytes += other.0;
    ///             *lines += other.1;
    ///         },
    ///     )
    ///     .map(|(letter, (bytes, lines))| (*letter, bytes / lines))
    ///     .write_csv("means")
    /// # }
    /// ```
    pub fn fold<A, F, M>(
        self,
        initial: A,
        add: F,
        merge: M,
    ) -> DataSet<'env, impl Chain<Item = (OwnedKey<K, C::Item>, A)>>
    where
        A: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
        F: Fn(&mut A, &C::Item) + Send + Sync + 'static,
        M: Fn(&mut A, A) + Send + Sync + 'static,
    {
        self.records.aggregated("fold", self.key, Fold { initial, add, merge })
    }
}

impl<'env, C, K, R> KeyedDataSet<'env, C, K>
where
    C: Chain<Item = R>,
    K: KeyOf<R>,
    R: Clone + Serialize + DeserializeOwned + Send + 'static,
{
    /// Puts the records of a key together, two by two: `function` puts the second into the first.
    /// It should not matter in which order.
    pub fn reduce<F>(self, function: F) -> DataSet<'env, impl Chain<Item = (OwnedKey<K, R>, R)>>
    where
        F: Fn(&mut R, &R) + Send + Sync + 'static,
    {
        self.records.aggregated("reduce", self.key, Reduce::new(function))
    }

    /// The least record of each key by `compare`; of equal ones that whose written form is least.
    pub fn min_by<F>(self, compare: F) -> DataSet<'env, impl Chain<Item = (OwnedKey<K, R>, R)>>
    where
        F: Fn(&R, &R) -> Ordering + Send + Sync + 'static,
    {
        self.reduce(move |least, other| {
            if compare(other, least).then_with(|| by_form(other, least)).is_lt() {
                least.clone_from(other);
            }
        })
    }

    /// The greatest record of each key by `compare`; of equal ones that whose written form is least.
    pub fn max_by<F>(self, compare: F) -> DataSet<'env, impl Chain<Item = (OwnedKey<K, R>, R)>>
    where
        F: Fn(&R, &R) -> Ordering + Send + Sync + 'static,
    {
        self.min_by(move |a, b| compare(a, b).reverse())
    }
}

/// The order of what records are written as, so that a choice does not depend on which came first.
fn by_form<R: Record>(a: &R, b: &R) -> Ordering {
    let form = |record: &R| {
        let mut bytes = Vec::new();
        // A record that cannot be written fails the job where it is written.
        record.write(&mut bytes).map_or_else(|_| Vec::new(), |()| bytes)
    };
    form(a).cmp(&form(b))
}
