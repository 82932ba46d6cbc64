//! How operators become one task: a chain is a description, and the task of it one concrete type.
//!
//! A chain builds its task from the end: it wraps what stands behind it in its own consumer and hands
//! that to its input, until the source makes the task. So the compiler sees the whole chain, and a
//! record costs no dynamic call.

use regrow_actors::task::{Task, TaskContext};
use regrow_protocol::{Split, TaskDeployment, TaskFailure};
use regrow_runtime::{CoordinatorKind, Determinacy};

use crate::record::Record;

/// The operators of a vertex so far, from its source or input on.
pub trait Chain: Send + Sync + 'static {
    /// What comes out.
    type Item: Record + ?Sized;

    /// Makes the task of an attempt: the chain with `end` behind it.
    ///
    /// # Errors
    /// When the deployment is none of this chain.
    fn task<E: Consume<Self::Item>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure>;

    /// Appends the name of each operator, source first.
    fn describe(&self, names: &mut Vec<&'static str>);

    /// What it reads.
    fn start(&self) -> ChainStart<'_>;

    /// Whether the same input gives the same records in the same order, each time.
    fn determinacy(&self) -> Determinacy {
        Determinacy::Determinate
    }
}

/// What a chain reads.
pub enum ChainStart<'a> {
    /// Splits, which the source lists.
    Splits(&'a dyn DiscoverSplits),
    /// The data sets of vertices before it.
    Edges,
}

/// Lists the splits of a source.
pub trait DiscoverSplits {
    /// Lists them, numbered from 0.
    ///
    /// # Errors
    /// When the input cannot be listed, with the path and what to do.
    fn discover_splits(&self) -> Result<Vec<Split>, String>;

    /// Lists splits of a sample of the input, numbered from 0, for who must know how its records are
    /// distributed before it reads them all. They are read as those of
    /// [`discover_splits`](Self::discover_splits) are, and need not be pieces of them.
    ///
    /// All of the input, where a source does not know of anything smaller.
    ///
    /// # Errors
    /// As `discover_splits`.
    fn sample_splits(&self) -> Result<Vec<Split>, String> {
        self.discover_splits()
    }

    /// Who hands the splits out.
    fn coordinator(&self) -> CoordinatorKind {
        CoordinatorKind::Source
    }
}

/// Takes the records of one attempt, one by one.
pub trait Consume<R: ?Sized>: Send + 'static {
    /// Takes a record.
    ///
    /// # Errors
    /// When the attempt cannot go on.
    fn consume(&mut self, record: &R, context: &mut dyn TaskContext) -> Result<(), TaskFailure>;

    /// All records were given.
    ///
    /// # Errors
    /// When the attempt cannot finish.
    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure>;
}

/// A vertex of a built job: what the factory needs of it.
pub(crate) trait VertexOperator: Send + Sync {
    /// Makes the task of an attempt.
    fn task(&self, deployment: &TaskDeployment) -> Result<Box<dyn Task>, TaskFailure>;

    /// Lists the splits of the vertex; none for one that reads other vertices.
    fn discover_splits(&self) -> Option<Result<Vec<Split>, String>>;
}
