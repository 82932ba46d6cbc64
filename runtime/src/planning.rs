//! How many subtasks a vertex gets and what each of them reads, from what was measured.

mod even_cut;

use regrow_protocol::{JobVertexId, SubpartitionRange};

use crate::{Distribution, InputRange, JobEdge, JobGraph, Options, Parallelism, VertexPlan};

/// Most subpartitions of a partition: their index is part of each file and each finish record.
const SUBPARTITIONS_MAX: u32 = 1024;

/// Most subtasks of a source whose parallelism nobody chose.
const SOURCE_PARALLELISM_MAX: u32 = 1024;

/// What is known of a finished input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InputStatistics {
    /// How many subtasks produced it.
    pub producer_parallelism: u32,
    /// Into how many subpartitions each of them divided it.
    pub subpartitions: u32,
    /// Bytes of each subpartition, summed over the producers; empty when not measured.
    pub subpartition_bytes: Vec<u64>,
}

/// Decides the plan of `vertex`: parallelism, and what each subtask reads of each of its `inputs`
/// (in the order of its edges). `source_bytes` is what a source has to read, where that is known.
///
/// Each (producer, subpartition) of an all-to-all or pointwise input is read by exactly one
/// subtask. All all-to-all inputs are cut at the same places, so that equal keys meet.
///
/// # Panics
/// When `graph` is not valid, `inputs` are not those of `vertex`, or its all-to-all inputs have
/// different numbers of subpartitions.
pub(crate) fn plan_vertex(
    graph: &JobGraph,
    vertex: JobVertexId,
    inputs: &[InputStatistics],
    source_bytes: Option<u64>,
    options: &Options,
) -> VertexPlan {
    let edges: Vec<&JobEdge> = graph.inputs(vertex).map(|(_, edge)| edge).collect();
    assert_eq!(edges.len(), inputs.len(), "inputs of vertex {vertex}");
    let inputs: Vec<Input<'_>> = edges
        .into_iter()
        .zip(inputs)
        .map(|(edge, statistics)| Input { distribution: edge.distribution, statistics })
        .collect();
    let bytes = all_to_all_bytes(vertex, &inputs);
    let reads_splits = graph.vertices[vertex.0 as usize].coordinator.is_some();
    let parallelism = match declared(graph, vertex) {
        Parallelism::Fixed(parallelism) => parallelism,
        Parallelism::Decided if inputs.is_empty() || reads_splits => {
            source_parallelism(source_bytes, options)
        }
        Parallelism::Decided => consumer_parallelism(&inputs, &bytes, options),
    };
    let cuts = even_cut::cut(&bytes, parallelism);
    let ranges = inputs.iter().map(|input| input.ranges(parallelism, &cuts)).collect();
    let outputs = graph
        .outputs(vertex)
        .map(|(_, edge)| output_subpartitions(graph, edge, parallelism, options))
        .collect();
    VertexPlan::new(parallelism, ranges, outputs)
}

/// One input of the vertex that is planned.
struct Input<'a> {
    distribution: Distribution,
    statistics: &'a InputStatistics,
}

impl Input<'_> {
    fn ranges(&self, parallelism: u32, cuts: &[SubpartitionRange]) -> Vec<InputRange> {
        let InputStatistics { producer_parallelism, subpartitions, .. } = *self.statistics;
        let all = SubpartitionRange { start: 0, end: subpartitions };
        let of_all_producers = |subpartitions| InputRange {
            producers_start: 0,
            producers_end: producer_parallelism,
            subpartitions,
        };
        match self.distribution {
            Distribution::AllToAll => cuts.iter().copied().map(of_all_producers).collect(),
            Distribution::Broadcast => vec![of_all_producers(all)],
            Distribution::Pointwise => (0..parallelism)
                .map(|subtask| {
                    pointwise_range(subtask, parallelism, producer_parallelism, subpartitions)
                })
                .collect(),
        }
    }
}

/// Fewer consumers than producers: each reads some producers whole. More: each producer is divided
/// among some consumers.
fn pointwise_range(subtask: u32, consumers: u32, producers: u32, subpartitions: u32) -> InputRange {
    if consumers <= producers {
        return InputRange {
            producers_start: share(subtask, producers, consumers),
            producers_end: share(subtask + 1, producers, consumers),
            subpartitions: SubpartitionRange { start: 0, end: subpartitions },
        };
    }
    let producer = share(subtask, producers, consumers);
    let first = first_consumer(producer, consumers, producers);
    let sharers = first_consumer(producer + 1, consumers, producers) - first;
    let place = subtask - first;
    InputRange {
        producers_start: producer,
        producers_end: producer + 1,
        subpartitions: SubpartitionRange {
            start: share(place, subpartitions, sharers),
            end: share(place + 1, subpartitions, sharers),
        },
    }
}

/// The least consumer that reads of `producer`, where each consumer reads of `share(consumer)`.
fn first_consumer(producer: u32, consumers: u32, producers: u32) -> u32 {
    let first = (u64::from(producer) * u64::from(consumers)).div_ceil(u64::from(producers));
    u32::try_from(first).unwrap_or(u32::MAX)
}

/// `floor(index * whole / parts)`: where part `index` of `parts` even ones begins.
fn share(index: u32, whole: u32, parts: u32) -> u32 {
    let start = u64::from(index) * u64::from(whole) / u64::from(parts);
    u32::try_from(start).unwrap_or(u32::MAX)
}

/// Bytes per subpartition, summed over all all-to-all inputs; empty if there are none.
fn all_to_all_bytes(vertex: JobVertexId, inputs: &[Input<'_>]) -> Vec<u64> {
    let mut sums: Option<Vec<u64>> = None;
    for input in inputs {
        if input.distribution != Distribution::AllToAll {
            continue;
        }
        let count = input.statistics.subpartitions as usize;
        let sums = sums.get_or_insert_with(|| vec![0; count]);
        assert_eq!(sums.len(), count, "subpartitions of the inputs of vertex {vertex}");
        for (sum, bytes) in sums.iter_mut().zip(&input.statistics.subpartition_bytes) {
            *sum = sum.saturating_add(*bytes);
        }
    }
    sums.unwrap_or_default()
}

fn source_parallelism(source_bytes: Option<u64>, options: &Options) -> u32 {
    options.source_parallelism.unwrap_or_else(|| {
        tasks_for(source_bytes.unwrap_or(0), options).clamp(1, SOURCE_PARALLELISM_MAX)
    })
}

fn consumer_parallelism(inputs: &[Input<'_>], bytes: &[u64], options: &Options) -> u32 {
    let pointwise = inputs.iter().find(|input| input.distribution == Distribution::Pointwise);
    if let Some(input) = pointwise {
        return input.statistics.producer_parallelism;
    }
    let total = bytes.iter().fold(0_u64, |total, bytes| total.saturating_add(*bytes));
    let wanted =
        tasks_for(total, options).min(options.max_parallelism).max(options.min_parallelism);
    // More tasks than subpartitions have nothing to read; without an all-to-all input, each would
    // read the same.
    let useful = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    wanted.min(useful).max(1)
}

fn tasks_for(bytes: u64, options: &Options) -> u32 {
    u32::try_from(bytes.div_ceil(options.bytes_per_task.max(1))).unwrap_or(u32::MAX)
}

/// Into how many subpartitions a producer of `parallelism` subtasks divides what it writes to
/// `edge`.
///
/// For an all-to-all edge this looks at the graph alone, never at what was decided for this
/// producer: all producers of one consumer must come to the same number.
fn output_subpartitions(
    graph: &JobGraph,
    edge: &JobEdge,
    parallelism: u32,
    options: &Options,
) -> u32 {
    match edge.distribution {
        Distribution::Broadcast => 1,
        Distribution::AllToAll => foreseen_parallelism(graph, edge.consumer, None)
            .unwrap_or(options.max_parallelism)
            .clamp(1, SUBPARTITIONS_MAX),
        Distribution::Pointwise => {
            let planned = Some((edge.producer, parallelism));
            let consumers = foreseen_parallelism(graph, edge.consumer, planned).unwrap_or(1);
            consumers.div_ceil(parallelism).clamp(1, SUBPARTITIONS_MAX)
        }
    }
}

/// The parallelism that `vertex` is certain to get: fixed, or that of the producer which it follows
/// pointwise. `planned` is a vertex whose plan is just being made.
fn foreseen_parallelism(
    graph: &JobGraph,
    mut vertex: JobVertexId,
    planned: Option<(JobVertexId, u32)>,
) -> Option<u32> {
    loop {
        if let Some((_, parallelism)) = planned.filter(|(planned, _)| *planned == vertex) {
            return Some(parallelism);
        }
        if let Parallelism::Fixed(parallelism) = declared(graph, vertex) {
            return Some(parallelism);
        }
        // Ends, because a vertex reads only vertices before it.
        let (_, pointwise) =
            graph.inputs(vertex).find(|(_, edge)| edge.distribution == Distribution::Pointwise)?;
        vertex = pointwise.producer;
    }
}

fn declared(graph: &JobGraph, vertex: JobVertexId) -> Parallelism {
    graph.vertices[vertex.0 as usize].parallelism
}

#[cfg(test)]
mod tests;
