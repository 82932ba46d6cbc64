//! The chain that begins with a source of a user's own.

use std::sync::Arc;

use regrow_actors::task::{Task, TaskContext};
use regrow_protocol::{Split, SplitId, TaskDeployment, TaskFailure, decode, encode};
use regrow_runtime::{CoordinatorKind, Determinacy};

use super::{
    source::{Listing, Source, SourceSplit, SplitProgress, SplitReader},
    split_task::{ReadSplits, SplitTask},
};
use crate::{
    chain::{Chain, ChainStart, Consume, DiscoverSplits},
    data_set::DataSet,
    environment::Environment,
    operators::Emitter,
};

/// A source of a user's own, at the beginning of a chain.
struct CustomSource<S> {
    source: Arc<S>,
}

impl Environment {
    /// Reads from a source of your own.
    pub fn read_from<S: Source>(
        &self,
        source: S,
    ) -> DataSet<'_, impl Chain<Item = <S::Reader as SplitReader>::Item>> {
        DataSet::from_source(self, CustomSource { source: Arc::new(source) })
    }
}

impl<S: Source> DiscoverSplits for CustomSource<S> {
    fn discover_splits(&self) -> Result<Vec<Split>, String> {
        numbered::<S>(self.source.discover()?)
    }

    fn sample_splits(&self) -> Result<Vec<Split>, String> {
        numbered::<S>(self.source.sample()?)
    }

    fn coordinator(&self) -> CoordinatorKind {
        match self.source.listing() {
            Listing::Durable => CoordinatorKind::Source,
            Listing::OneListing => CoordinatorKind::OneListingSource,
        }
    }
}

fn numbered<S: Source>(splits: Vec<SourceSplit<S::Split>>) -> Result<Vec<Split>, String> {
    splits
        .into_iter()
        .zip(0..)
        .map(|(SourceSplit { split, size_bytes }, id)| {
            let payload = encode(&split).map_err(|error| {
                let source = std::any::type_name::<S>();
                format!("split {id} of the source {source} cannot be written: {error}")
            })?;
            Ok(Split { id: SplitId(id), size_bytes, payload })
        })
        .collect()
}

impl<S: Source> Chain for CustomSource<S> {
    type Item = <S::Reader as SplitReader>::Item;

    fn task<E: Consume<Self::Item>>(
        &self,
        _deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        let source = Arc::clone(&self.source);
        let reads = CustomReads { source, reader: None, emitter: Emitter::default() };
        Ok(Box::new(SplitTask::new(reads, end)))
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        names.push("read_from");
    }

    fn start(&self) -> ChainStart<'_> {
        ChainStart::Splits(self)
    }

    fn determinacy(&self) -> Determinacy {
        self.source.determinacy()
    }
}

struct CustomReads<S: Source> {
    source: Arc<S>,
    reader: Option<S::Reader>,
    emitter: Emitter<<S::Reader as SplitReader>::Item>,
}

impl<S: Source> ReadSplits for CustomReads<S> {
    type Item = <S::Reader as SplitReader>::Item;

    fn open(&mut self, split: &Split) -> Result<(), TaskFailure> {
        let payload = decode(&split.payload).map_err(|error| {
            let source = std::any::type_name::<S>();
            TaskFailure::unrecoverable(format!(
                "split {} is none of the source {source}: {error}",
                split.id.0
            ))
        })?;
        self.reader = Some(self.source.open(payload)?);
        Ok(())
    }

    fn read<E: Consume<Self::Item>>(
        &mut self,
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<SplitProgress, TaskFailure> {
        let Some(reader) = &mut self.reader else { return Ok(SplitProgress::End) };
        let progress = reader.read(&mut self.emitter)?;
        if progress == SplitProgress::End {
            self.reader = None;
        }
        context.metrics().records_in += self.emitter.len() as u64;
        self.emitter.pass_on(end, context)?;
        Ok(progress)
    }

    fn end(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.emitter.hand_over(context)
    }
}

#[cfg(test)]
mod tests;
