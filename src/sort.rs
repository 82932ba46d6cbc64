//! The global sort: all records in order, over all tasks.
//!
//! A sample of the records decides, in one task, where ranges may begin; each task that has records
//! divides them among the ranges, and each task behind that sorts some ranges in a row. So the files
//! of a sink, in the order of their names, are sorted as one. What was decided is a partition like
//! any other: it is kept, or made again, as recovery has it.
//!
//! ```text
//! source: sample -> decide_ranges -> source, partition_by_range -> sort
//! other:  records, sample -> decide_ranges -> partition_by_range -> sort
//!                       \__________ records _________/
//! ```
//! A source is read twice, first a sample of it; so its records are written once, divided. Other
//! records are written while they are sampled, and once more when they are divided.
//!
//! Records order by key, those of one key by their bytes, the form that they have in blocks. So the
//! same records come in the same order, however they were divided among tasks, and whatever was
//! spilled.

mod arena;
mod boundaries;
mod decide_ranges;
mod entry;
mod key_function;
mod merge;
mod quantiles;
mod range_partition;
mod run_reader;
mod runs;
mod sample_end;
mod sampler;
mod shared_chain;
mod sort_key;
mod sorted_input;
mod sorter;
#[cfg(test)]
mod tests;
mod uncounted;

use std::sync::Arc;

use regrow_protocol::JobVertexId;
use regrow_runtime::{CoordinatorKind, Distribution};

pub use self::sort_key::{KeyParts, SortKey};
use self::{
    decide_ranges::DecideRanges,
    key_function::{AddedKey, KeyFunction, ReturnedKey},
    range_partition::RangePartition,
    sample_end::SampleEnd,
    sampler::Sample,
    shared_chain::SharedChain,
    sorted_input::SortedInput,
    uncounted::Uncounted,
};
pub(crate) use self::{merge::Merge, runs::Runs};
use crate::{
    chain::{Chain, ChainStart},
    data_set::DataSet,
    environment::{Environment, VertexInput},
    exchange::RecordInput,
};

impl<'env, C: Chain> DataSet<'env, C> {
    /// Sorts all records by the key that `key` returns: those of the first task come first, then
    /// those of the second, and so on. Records of the same key come in the order of their bytes.
    ///
    /// The functions between a source and a sort run twice for a small part of the input: first for
    /// a sample of it, where what they count is not counted.
    ///
    /// Where a key would have to be copied, as a text out of a record,
    /// [`sort_by_key_parts`](Self::sort_by_key_parts) does without.
    ///
    /// ```
    /// # use regrow::*;
    /// # fn build(env: &Environment) -> Written {
    /// env.read_text("words")
    ///     .count_by_key()
    ///     .sort_by_key(|(_, count)| std::cmp::Reverse(*count))
    ///     .write_csv("most-frequent-first")
    /// # }
    /// ```
    pub fn sort_by_key<K, F>(self, key: F) -> DataSet<'env, impl Chain<Item = C::Item>>
    where
        K: SortKey + 'static,
        F: Fn(&C::Item) -> K + Send + Sync + 'static,
    {
        self.sort(ReturnedKey::new(key))
    }

    /// Like [`sort_by_key`](Self::sort_by_key), by a key that is put together from parts, which may
    /// be borrowed from the record: `|record, key| key.add(&record.name)`.
    pub fn sort_by_key_parts<F>(self, key: F) -> DataSet<'env, impl Chain<Item = C::Item>>
    where
        F: Fn(&C::Item, &mut KeyParts) + Send + Sync + 'static,
    {
        self.sort(AddedKey::new(key))
    }

    fn sort<K: KeyFunction<C::Item>>(self, key: K) -> DataSet<'env, impl Chain<Item = C::Item>> {
        let key = Arc::new(key);
        let environment = self.environment;
        let producer = if can_be_read_twice(&self.chain) {
            self.partition_read(&key)
        } else {
            self.partition_written(&key)
        };
        let input = VertexInput { producer, distribution: Distribution::AllToAll };
        DataSet::reading(environment, SortedInput::new(key), vec![input])
    }

    /// Samples the source, and divides the records as they are read.
    fn partition_read<K: KeyFunction<C::Item>>(self, key: &Arc<K>) -> JobVertexId {
        let Self { environment, chain, mut inputs, parallelism } = self;
        let (sample, all) = SharedChain::pair(chain);
        let of_samples = Arc::clone(key);
        let samples = DataSet::reading(environment, sample, inputs.clone()).end(
            "sample",
            move |chain, deployment| {
                let end = SampleEnd::new(deployment, Arc::clone(&of_samples));
                Ok(Box::new(Uncounted(chain.task(deployment, end)?)))
            },
        );
        let ranges = decide_ranges(environment, samples);
        let input = inputs.len();
        inputs.push(VertexInput { producer: ranges, distribution: Distribution::Broadcast });
        let key = Arc::clone(key);
        let mut records = DataSet::reading(environment, all, inputs);
        records.parallelism = parallelism;
        records.end("partition_by_range", move |chain, deployment| {
            chain.task(deployment, RangePartition::new(deployment, Arc::clone(&key), input))
        })
    }

    /// Writes the records while they are sampled, and divides what was written.
    fn partition_written<K: KeyFunction<C::Item>>(self, key: &Arc<K>) -> JobVertexId {
        let environment = self.environment;
        let of_samples = Arc::clone(key);
        let records = self.end("sample", move |chain, deployment| {
            chain.task(deployment, SampleEnd::new(deployment, Arc::clone(&of_samples)))
        });
        // The first edge that leaves the vertex: samples are its first output.
        let ranges = decide_ranges(environment, records);
        let inputs = vec![
            VertexInput { producer: records, distribution: Distribution::Pointwise },
            VertexInput { producer: ranges, distribution: Distribution::Broadcast },
        ];
        let key = Arc::clone(key);
        let records = RecordInput::<C::Item>::of_first("records");
        DataSet::reading(environment, records, inputs).end(
            "partition_by_range",
            move |chain, deployment| {
                chain.task(deployment, RangePartition::new(deployment, Arc::clone(&key), 1))
            },
        )
    }
}

/// Whether a chain has a source that lists the same splits each time.
fn can_be_read_twice(chain: &impl Chain) -> bool {
    match chain.start() {
        ChainStart::Splits(source) => match source.coordinator() {
            CoordinatorKind::Source => true,
            CoordinatorKind::OneListingSource => false,
        },
        ChainStart::Edges => false,
    }
}

/// The vertex that decides where ranges may begin.
fn decide_ranges(environment: &Environment, samples: JobVertexId) -> JobVertexId {
    let input = VertexInput { producer: samples, distribution: Distribution::AllToAll };
    DataSet::reading(environment, RecordInput::<Sample>::new("samples"), vec![input])
        .with_parallelism(1)
        .end("decide_ranges", |chain, deployment| {
            chain.task(deployment, DecideRanges::new(deployment))
        })
}
