//! Runs a job's tasks one after the other in memory, for unit tests of operators: no actor, no
//! scheduler, no file but those that tasks stage or spill.

use std::collections::{BTreeMap, VecDeque};

use regrow_actors::task::TaskContext as _;
use regrow_protocol::{
    Accumulators, DataSetId, JobVertexId, OutputSpec, PinnedSplits, SinkTarget, Split,
    SubpartitionRange, TaskFailure,
};
use regrow_runtime::{Distribution, JobEdge, Parallelism};

use crate::{
    environment::{BuiltJob, Environment},
    test_context::TestContext,
};

/// Tasks of a vertex whose parallelism is left open.
const TASKS: u32 = 3;

/// How a job is run.
pub(crate) struct TestJob {
    job: BuiltJob,
    memory_bytes: u64,
    /// Blocks by data set, producer and subpartition.
    blocks: BTreeMap<(DataSetId, u32, u32), Vec<Vec<u8>>>,
    tasks: Vec<u32>,
    /// What was staged: sink, final name, content.
    files: Vec<(u32, String, Vec<u8>)>,
    accumulators: Accumulators,
}

impl TestJob {
    /// Builds a job whose tasks get `memory_bytes`.
    pub(crate) fn new<T>(memory_bytes: u64, build: impl FnOnce(&Environment) -> T) -> Self {
        Self {
            job: built(build),
            memory_bytes,
            blocks: BTreeMap::new(),
            tasks: Vec::new(),
            files: Vec::new(),
            accumulators: Accumulators::default(),
        }
    }

    /// Runs all vertices; gives the lines of all files that sink 0 staged, in the order of names.
    pub(crate) fn lines(mut self) -> Result<Vec<String>, TaskFailure> {
        self.run_from(0)?;
        Ok(self.staged_lines())
    }

    /// Like [`lines`](Self::lines), where another process, in which `build` makes the job anew, goes
    /// on at `vertex`.
    pub(crate) fn lines_resumed_at<T>(
        mut self,
        vertex: JobVertexId,
        build: impl FnOnce(&Environment) -> T,
    ) -> Result<Vec<String>, TaskFailure> {
        (0..vertex.0).map(JobVertexId).try_for_each(|vertex| self.run_vertex(vertex))?;
        self.job = built(build);
        self.run_from(vertex.0)?;
        Ok(self.staged_lines())
    }

    fn staged_lines(mut self) -> Vec<String> {
        self.files.sort();
        let text = |(_, _, content): (u32, String, Vec<u8>)| String::from_utf8(content).unwrap();
        let sink_0 = self.files.into_iter().filter(|(sink, ..)| *sink == 0);
        sink_0.flat_map(|file| text(file).lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// Runs all vertices; gives all that was staged, ascending by sink and name.
    pub(crate) fn files(mut self) -> Result<Vec<(u32, String, Vec<u8>)>, TaskFailure> {
        self.run_from(0)?;
        self.files.sort();
        Ok(self.files)
    }

    /// Runs all vertices; gives what they accumulated.
    pub(crate) fn accumulators(mut self) -> Result<Accumulators, TaskFailure> {
        self.run_from(0)?;
        Ok(self.accumulators)
    }

    fn run_from(&mut self, first: u32) -> Result<(), TaskFailure> {
        let last = u32::try_from(self.job.graph.vertices.len()).unwrap();
        (first..last).map(JobVertexId).try_for_each(|vertex| self.run_vertex(vertex))
    }

    fn run_vertex(&mut self, vertex: JobVertexId) -> Result<(), TaskFailure> {
        let tasks = self.parallelism(vertex);
        self.tasks.push(tasks);
        let operator = &self.job.operators[vertex.0 as usize];
        let splits: Vec<Split> = operator
            .discover_splits()
            .map(|splits| splits.map_err(TaskFailure::unrecoverable))
            .transpose()?
            .unwrap_or_default();
        for subtask in 0..tasks {
            let mut context = self.context(vertex, subtask);
            context.splits =
                splits.iter().skip(subtask as usize).step_by(tasks as usize).cloned().collect();
            let mut task = self.job.operators[vertex.0 as usize].task(&context.deployment)?;
            context.run(&mut *task)?;
            self.keep(subtask, context);
        }
        Ok(())
    }

    fn context(&self, vertex: JobVertexId, subtask: u32) -> TestContext {
        let graph = &self.job.graph;
        let mut context = TestContext::new(subtask);
        context.deployment.attempt.vertex = vertex;
        context.deployment.memory_bytes = self.memory_bytes;
        context.deployment.parallelism = self.tasks[vertex.0 as usize];
        if graph.vertices[vertex.0 as usize].coordinator.is_none() {
            context.deployment.splits = PinnedSplits::None;
        }
        context.deployment.outputs = graph
            .outputs(vertex)
            .map(|(data_set, edge)| OutputSpec {
                data_set,
                subpartitions: self.subpartitions(edge),
            })
            .collect();
        let staging_directory = context.deployment.sinks[0].staging_directory.clone();
        context.deployment.sinks = (0..)
            .zip(&graph.sinks)
            .filter(|(_, sink)| sink.vertex == vertex)
            .map(|(sink, _)| SinkTarget { sink, staging_directory: staging_directory.clone() })
            .collect();
        for (data_set, edge) in graph.inputs(vertex) {
            self.add_input(&mut context, data_set, edge, subtask);
        }
        context
    }

    fn add_input(
        &self,
        context: &mut TestContext,
        data_set: DataSetId,
        edge: &JobEdge,
        subtask: u32,
    ) {
        let producers = self.tasks[edge.producer.0 as usize];
        let (producers, subpartition) = match edge.distribution {
            Distribution::AllToAll => (0..producers, subtask),
            Distribution::Pointwise => (subtask..subtask + 1, 0),
            Distribution::Broadcast => (0..producers, 0),
        };
        let range = SubpartitionRange { start: subpartition, end: subpartition + 1 };
        context.read_from(producers.end - producers.start, range);
        let blocks: VecDeque<Vec<u8>> = producers
            .flat_map(|producer| {
                self.blocks.get(&(data_set, producer, subpartition)).cloned().unwrap_or_default()
            })
            .collect();
        let input = context.deployment.inputs.len() - 1;
        context.set_input(input, blocks);
    }

    fn keep(&mut self, subtask: u32, mut context: TestContext) {
        self.accumulators.merge(context.accumulators());
        for (output, subpartition, block) in std::mem::take(&mut context.written) {
            let data_set = context.deployment.outputs[output].data_set;
            self.blocks.entry((data_set, subtask, subpartition)).or_default().push(block);
        }
        for file in &context.staged {
            self.files.push((file.sink, file.final_name.clone(), context.staged_bytes(file)));
        }
    }

    /// A consumer of an all-to-all edge reads one subpartition.
    fn subpartitions(&self, edge: &JobEdge) -> u32 {
        match edge.distribution {
            Distribution::AllToAll => self.parallelism(edge.consumer),
            Distribution::Pointwise | Distribution::Broadcast => 1,
        }
    }

    fn parallelism(&self, vertex: JobVertexId) -> u32 {
        let graph = &self.job.graph;
        let pointwise =
            graph.inputs(vertex).find(|(_, edge)| edge.distribution == Distribution::Pointwise);
        match (graph.vertices[vertex.0 as usize].parallelism, pointwise) {
            (_, Some((_, edge))) => self.parallelism(edge.producer),
            (Parallelism::Fixed(tasks), None) => tasks,
            (Parallelism::Decided, None) => TASKS,
        }
    }
}

fn built<T>(build: impl FnOnce(&Environment) -> T) -> BuiltJob {
    let environment = Environment::new(Some("/".into()), false);
    build(&environment);
    let job = environment.into_job();
    assert_eq!(job.defect, None);
    job.graph.validate().unwrap();
    job
}
