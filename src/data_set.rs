//! Data that flows through a job.

use regrow_actors::task::Task;
use regrow_protocol::{JobVertexId, Split, TaskDeployment, TaskFailure};
use regrow_runtime::{Distribution, Parallelism};

use crate::{
    chain::{Chain, ChainStart, VertexOperator},
    environment::{Environment, NewVertex, VertexInput},
    exchange::{Forward, RecordInput},
    operators::{
        Emitter, Filter, FlatMap, FlatMapText, Indeterminate, Map, MapPartition, PartitionFunction,
        TextEmitter,
    },
    record::Record,
};

/// Data that flows through a job: what comes out of a chain of operators.
///
/// Operators that need no exchange between tasks are one vertex of the job and run in one task.
/// Functions get records borrowed, and are shared by all tasks of a process: what a function keeps
/// for itself belongs into [`map_partition`](Self::map_partition).
#[must_use = "a data set that is not written anywhere is never computed"]
pub struct DataSet<'env, C> {
    pub(crate) environment: &'env Environment,
    pub(crate) chain: C,
    /// What the vertex of the chain reads, for a chain that has no source.
    pub(crate) inputs: Vec<VertexInput>,
    pub(crate) parallelism: Parallelism,
}

impl<'env, C: Chain> DataSet<'env, C> {
    /// A data set that begins with a source.
    pub(crate) fn from_source(environment: &'env Environment, chain: C) -> Self {
        Self::reading(environment, chain, Vec::new())
    }

    /// A data set that begins with what other vertices produce.
    pub(crate) fn reading(
        environment: &'env Environment,
        chain: C,
        inputs: Vec<VertexInput>,
    ) -> Self {
        Self { environment, chain, inputs, parallelism: Parallelism::Decided }
    }

    /// Sets how many tasks run the vertex that these operators are part of, instead of what is
    /// decided from the size of its input.
    pub fn with_parallelism(mut self, tasks: u32) -> Self {
        self.parallelism = Parallelism::Fixed(tasks);
        self
    }

    /// Applies `function` to each record.
    pub fn map<O, F>(self, function: F) -> DataSet<'env, impl Chain<Item = O>>
    where
        O: Record,
        F: Fn(&C::Item) -> O + Send + Sync + 'static,
    {
        self.chained(|chain| Map::new(chain, function))
    }

    /// Keeps the records for which `keep` is true.
    pub fn filter<F>(self, keep: F) -> DataSet<'env, impl Chain<Item = C::Item>>
    where
        F: Fn(&C::Item) -> bool + Send + Sync + 'static,
    {
        self.chained(|chain| Filter::new(chain, keep))
    }

    /// Applies `function` to each record; what it emits are the new records.
    pub fn flat_map<O, F>(self, function: F) -> DataSet<'env, impl Chain<Item = O>>
    where
        O: Record,
        F: Fn(&C::Item, &mut Emitter<O>) + Send + Sync + 'static,
    {
        self.chained(|chain| FlatMap::new(chain, function))
    }

    /// Like [`flat_map`](Self::flat_map), for functions that make texts: these are borrowed by what
    /// comes next, and cost no allocation.
    pub fn flat_map_text<F>(self, function: F) -> DataSet<'env, impl Chain<Item = str>>
    where
        F: Fn(&C::Item, &mut TextEmitter) + Send + Sync + 'static,
    {
        self.chained(|chain| FlatMapText::new(chain, function))
    }

    /// Gives all records of a task to a function that `make` makes for each attempt: for what needs
    /// a state, or an end.
    ///
    /// ```
    /// # use regrow::*;
    /// /// Passes each line on that differs from the one before it.
    /// #[derive(Default)]
    /// struct Changes(Option<String>);
    ///
    /// impl PartitionFunction<str> for Changes {
    ///     type Output = String;
    ///
    ///     fn record(&mut self, line: &str, out: &mut Emitter<String>) {
    ///         if self.0.as_deref() != Some(line) {
    ///             out.emit(line.to_owned());
    ///             self.0 = Some(line.to_owned());
    ///         }
    ///     }
    /// }
    /// # fn build(env: &Environment) -> Written {
    /// env.read_text("lines").map_partition(Changes::default).write_text("changes")
    /// # }
    /// ```
    pub fn map_partition<P, N>(self, make: N) -> DataSet<'env, impl Chain<Item = P::Output>>
    where
        P: PartitionFunction<C::Item, Output: Sized>,
        N: Fn() -> P + Send + Sync + 'static,
    {
        self.chained(|chain| MapPartition::new(chain, make))
    }

    /// The records of this data set and of `other`, each as often as it occurs there. Both are
    /// written out and read again; in which order is said by nothing but the number of the task.
    pub fn union<D>(self, other: DataSet<'env, D>) -> DataSet<'env, impl Chain<Item = C::Item>>
    where
        D: Chain<Item = C::Item>,
    {
        let environment = self.environment;
        let inputs = vec![self.forward(), other.forward()];
        DataSet::reading(environment, RecordInput::new("union"), inputs)
    }

    /// Says that the functions of this vertex may make other records of the same input when they
    /// run again: by a clock, for example, or by chance. Without it, a task that runs again is taken
    /// to write what it wrote before, and those who read that keep what they made of it.
    pub fn indeterminate(self) -> DataSet<'env, impl Chain<Item = C::Item>> {
        self.chained(Indeterminate::new)
    }

    /// Ends the vertex; who reads it gets its records as they are, task by task.
    pub(crate) fn forward(self) -> VertexInput {
        let producer = self.end("forward", |chain, deployment| {
            chain.task(deployment, Forward::new(deployment, 0))
        });
        VertexInput { producer, distribution: Distribution::Pointwise }
    }

    /// Puts one more operator behind the chain.
    pub(crate) fn chained<D>(self, wrap: impl FnOnce(C) -> D) -> DataSet<'env, D> {
        let Self { environment, chain, inputs, parallelism } = self;
        DataSet { environment, chain: wrap(chain), inputs, parallelism }
    }

    /// Ends the vertex of the chain; `make` makes the task of an attempt.
    pub(crate) fn end<F>(self, name: &'static str, make: F) -> JobVertexId
    where
        F: Fn(&C, &TaskDeployment) -> Result<Box<dyn Task>, TaskFailure> + Send + Sync + 'static,
    {
        let mut names = Vec::new();
        self.chain.describe(&mut names);
        names.push(name);
        let coordinator = match self.chain.start() {
            ChainStart::Splits(source) => Some(source.coordinator()),
            ChainStart::Edges => None,
        };
        self.environment.add_vertex(NewVertex {
            name: names.join(" -> "),
            parallelism: self.parallelism,
            coordinator,
            determinacy: self.chain.determinacy(),
            inputs: self.inputs,
            operator: Box::new(ChainOperator { chain: self.chain, make }),
        })
    }
}

/// A chain and what stands at its end.
struct ChainOperator<C, F> {
    chain: C,
    make: F,
}

impl<C, F> VertexOperator for ChainOperator<C, F>
where
    C: Chain,
    F: Fn(&C, &TaskDeployment) -> Result<Box<dyn Task>, TaskFailure> + Send + Sync,
{
    fn task(&self, deployment: &TaskDeployment) -> Result<Box<dyn Task>, TaskFailure> {
        (self.make)(&self.chain, deployment)
    }

    fn discover_splits(&self) -> Option<Result<Vec<Split>, String>> {
        match self.chain.start() {
            ChainStart::Splits(source) => Some(source.discover_splits()),
            ChainStart::Edges => None,
        }
    }
}
