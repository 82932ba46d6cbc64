//! A chain that runs in two vertices: over a sample of its source, and over all of it.

use std::sync::Arc;

use regrow_actors::task::Task;
use regrow_protocol::{Split, TaskDeployment, TaskFailure};
use regrow_runtime::{CoordinatorKind, Determinacy};

use crate::chain::{Chain, ChainStart, Consume, DiscoverSplits};

/// What of its source a chain reads.
#[derive(Clone, Copy)]
enum Extent {
    All,
    Sample,
}

/// A chain that is shared with another vertex.
pub(super) struct SharedChain<C> {
    chain: Arc<C>,
    extent: Extent,
}

impl<C: Chain> SharedChain<C> {
    /// The chain over a sample of its source, and over all of it.
    pub(super) fn pair(chain: C) -> (Self, Self) {
        let chain = Arc::new(chain);
        let sample = Self { chain: Arc::clone(&chain), extent: Extent::Sample };
        (sample, Self { chain, extent: Extent::All })
    }
}

impl<C: Chain> Chain for SharedChain<C> {
    type Item = C::Item;

    fn task<E: Consume<C::Item>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        self.chain.task(deployment, end)
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        self.chain.describe(names);
    }

    fn start(&self) -> ChainStart<'_> {
        match self.chain.start() {
            ChainStart::Splits(_) => ChainStart::Splits(self),
            ChainStart::Edges => ChainStart::Edges,
        }
    }

    fn determinacy(&self) -> Determinacy {
        self.chain.determinacy()
    }
}

impl<C: Chain> DiscoverSplits for SharedChain<C> {
    fn discover_splits(&self) -> Result<Vec<Split>, String> {
        match (self.chain.start(), self.extent) {
            (ChainStart::Splits(source), Extent::All) => source.discover_splits(),
            (ChainStart::Splits(source), Extent::Sample) => source.sample_splits(),
            (ChainStart::Edges, _) => Ok(Vec::new()),
        }
    }

    fn sample_splits(&self) -> Result<Vec<Split>, String> {
        match self.chain.start() {
            ChainStart::Splits(source) => source.sample_splits(),
            ChainStart::Edges => Ok(Vec::new()),
        }
    }

    fn coordinator(&self) -> CoordinatorKind {
        match self.chain.start() {
            ChainStart::Splits(source) => source.coordinator(),
            ChainStart::Edges => CoordinatorKind::Source,
        }
    }
}
