//! Data that flows through a job.

use std::path::Path;

use regrow_actors::task::Task;
use regrow_protocol::{JobVertexId, Split, TaskDeployment, TaskFailure};
use regrow_runtime::{CoordinatorKind, Distribution, Parallelism};

use crate::{
    chain::{Chain, ChainInput, VertexOperator},
    combine::Combine,
    counted_input::CountedInput,
    csv_record::CsvRecord,
    csv_sink::CsvSink,
    emitter::Emitter,
    environment::{Environment, NewVertex},
    flat_map::FlatMap,
};

/// Data that flows through a job: what comes out of a chain of operators.
///
/// Operators that need no exchange between tasks are one vertex of the job and run in one task.
#[must_use = "a data set that is not written anywhere is never computed"]
pub struct DataSet<'env, C> {
    environment: &'env Environment,
    chain: C,
    /// The vertex that the chain reads, for a chain that has no source.
    producer: Option<JobVertexId>,
}

/// The last step of a job: it is written somewhere.
#[derive(Debug)]
pub struct Written {
    _private: (),
}

impl<'env, C: Chain> DataSet<'env, C> {
    pub(crate) fn new(
        environment: &'env Environment,
        chain: C,
        producer: Option<JobVertexId>,
    ) -> Self {
        Self { environment, chain, producer }
    }

    /// Writes each record as a line of CSV (RFC 4180, without a header) to files
    /// `part-00000.csv`, ... in `directory`, which appear together when the job has finished.
    pub fn write_csv(self, directory: impl AsRef<Path>) -> Written
    where
        C::Item: CsvRecord,
    {
        let environment = self.environment;
        let vertex = self.end("write_csv", |chain, deployment| {
            Ok(chain.task(deployment, CsvSink::new(deployment)?))
        });
        environment.add_sink(vertex, directory.as_ref());
        Written { _private: () }
    }

    /// Ends the vertex of the chain.
    fn end<F>(self, name: &'static str, make: F) -> JobVertexId
    where
        F: Fn(&C, &TaskDeployment) -> Result<Box<dyn Task>, TaskFailure> + Send + Sync + 'static,
    {
        let mut names = Vec::new();
        self.chain.describe(&mut names);
        names.push(name);
        let coordinator = match self.chain.input() {
            ChainInput::Splits(_) => Some(CoordinatorKind::Source),
            ChainInput::Edge => None,
        };
        let vertex = self.environment.add_vertex(NewVertex {
            name: names.join(" -> "),
            parallelism: Parallelism::Decided,
            coordinator,
            operator: Box::new(ChainOperator { chain: self.chain, make }),
        });
        if let Some(producer) = self.producer {
            self.environment.add_edge(producer, vertex, Distribution::AllToAll);
        }
        vertex
    }
}

impl<'env, C: Chain<Item = String>> DataSet<'env, C> {
    /// Applies `function` to each record; what it emits are the new records.
    pub fn flat_map<F>(self, function: F) -> DataSet<'env, FlatMap<C, F>>
    where
        F: Fn(&str, &mut Emitter) + Send + Sync + 'static,
    {
        DataSet {
            environment: self.environment,
            chain: FlatMap::new(self.chain, function),
            producer: self.producer,
        }
    }

    /// Counts how often each record occurs. Counts go through the job, not records: each task
    /// counts what it sees before it sends it on.
    pub fn count_by_key(self) -> DataSet<'env, CountedInput> {
        let environment = self.environment;
        let producer = self.end("count_by_key", |chain, deployment| {
            Ok(chain.task(deployment, Combine::new(deployment)))
        });
        DataSet::new(environment, CountedInput, Some(producer))
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
        match self.chain.input() {
            ChainInput::Splits(source) => Some(source.discover_splits()),
            ChainInput::Edge => None,
        }
    }
}
