use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{CoordinatorKind, Determinacy, JobVertex};

const MIB: u64 = 1 << 20;

/// A graph of vertices with these parallelisms (0 is undecided) and edges.
fn graph(parallelisms: &[u32], edges: &[(u32, u32, Distribution)]) -> JobGraph {
    let vertices = parallelisms.iter().map(|&parallelism| JobVertex {
        name: "vertex".to_owned(),
        parallelism: match parallelism {
            0 => Parallelism::Decided,
            fixed => Parallelism::Fixed(fixed),
        },
        coordinator: None,
        determinacy: Determinacy::Determinate,
    });
    let edges = edges.iter().map(|&(producer, consumer, distribution)| JobEdge {
        producer: JobVertexId(producer),
        consumer: JobVertexId(consumer),
        distribution,
    });
    JobGraph { vertices: vertices.collect(), edges: edges.collect(), sinks: vec![] }
}

fn measured(producer_parallelism: u32, bytes: &[u64]) -> InputStatistics {
    let subpartitions = u32::try_from(bytes.len()).unwrap();
    let subpartition_bytes = bytes.to_vec();
    InputStatistics { producer_parallelism, subpartitions, subpartition_bytes }
}

fn unmeasured(producer_parallelism: u32, subpartitions: u32) -> InputStatistics {
    InputStatistics { producer_parallelism, subpartitions, subpartition_bytes: vec![] }
}

/// The plan of the last vertex, with the default options.
fn plan(graph: &JobGraph, inputs: &[InputStatistics]) -> VertexPlan {
    let last = u32::try_from(graph.vertices.len()).unwrap() - 1;
    plan_vertex(graph, JobVertexId(last), inputs, None, &Options::default())
}

fn source(bytes: Option<u64>, options: &Options) -> u32 {
    plan_vertex(&graph(&[0], &[]), JobVertexId(0), &[], bytes, options).parallelism
}

/// What the first vertex writes to its first edge when it has `parallelism` subtasks.
fn subpartitions(graph: &JobGraph, parallelism: u32) -> u32 {
    let mut fixed = graph.clone();
    fixed.vertices[0].parallelism = Parallelism::Fixed(parallelism);
    plan_vertex(&fixed, JobVertexId(0), &[], None, &Options::default()).output_subpartitions[0]
}

#[test]
fn a_source_has_one_task_per_16_mib_and_at_most_1024() {
    let options = Options::default();
    let bytes = [None, Some(0), Some(1), Some(16 * MIB), Some(16 * MIB + 1), Some(u64::MAX)];
    let found = bytes.map(|bytes| source(bytes, &options));
    assert_eq!(found, [1, 1, 1, 1, 2, 1024]);
}

#[test]
fn a_chosen_source_parallelism_is_taken() {
    let options = Options { source_parallelism: Some(7), ..Options::default() };
    assert_eq!(source(Some(900 * MIB), &options), 7);
}

#[test]
fn a_consumer_has_one_task_per_16_mib_within_the_options() {
    let graph = graph(&[2, 0], &[(0, 1, Distribution::AllToAll)]);
    let options = Options { min_parallelism: 2, max_parallelism: 9, ..Options::default() };
    let parallelism = |mib: u64, subpartitions: usize| {
        let inputs = [measured(2, &vec![mib * MIB / subpartitions as u64; subpartitions])];
        plan_vertex(&graph, JobVertexId(1), &inputs, None, &options).parallelism
    };
    assert_eq!(parallelism(0, 8), 2);
    assert_eq!(parallelism(64, 8), 4);
    assert_eq!(parallelism(640, 16), 9);
    assert_eq!(parallelism(640, 4), 4);
}

#[test]
fn a_consumer_follows_its_first_pointwise_producer() {
    let edges = [
        (0, 3, Distribution::AllToAll),
        (1, 3, Distribution::Pointwise),
        (2, 3, Distribution::Pointwise),
    ];
    let inputs = [measured(2, &[900 * MIB; 128]), unmeasured(5, 1), unmeasured(6, 1)];
    assert_eq!(plan(&graph(&[2, 5, 6, 0], &edges), &inputs).parallelism, 5);
}

#[test]
fn a_consumer_of_broadcasts_alone_runs_once() {
    let graph = graph(&[2, 0], &[(0, 1, Distribution::Broadcast)]);
    let plan = plan(&graph, &[measured(2, &[900 * MIB])]);
    assert_eq!(plan.parallelism, 1);
    assert_eq!(plan.input_range(0, 0).producers(), 0..2);
}

#[test]
fn a_source_that_reads_a_broadcast_has_as_many_tasks_as_its_splits_ask_for() {
    let mut graph = graph(&[2, 0], &[(0, 1, Distribution::Broadcast)]);
    graph.vertices[1].coordinator = Some(CoordinatorKind::Source);
    let (inputs, options) = ([measured(2, &[MIB])], Options::default());
    let plan = plan_vertex(&graph, JobVertexId(1), &inputs, Some(160 * MIB), &options);
    assert_eq!(plan.parallelism, 10);
    assert_eq!(plan.inputs[0].len(), 1);
}

#[test]
fn a_broadcast_is_read_whole_by_each_subtask() {
    let graph = graph(&[3, 4], &[(0, 1, Distribution::Broadcast)]);
    let plan = plan(&graph, &[unmeasured(3, 1)]);
    assert_eq!(plan.inputs[0].len(), 1);
    let range = plan.input_range(0, 3);
    assert_eq!(range.producers(), 0..3);
    assert_eq!(range.subpartitions, SubpartitionRange { start: 0, end: 1 });
}

#[test]
fn each_of_p_subtasks_has_its_own_of_p_subpartitions() {
    let graph = graph(&[2, 3], &[(0, 1, Distribution::AllToAll)]);
    let plan = plan(&graph, &[measured(2, &[0, 900, 0])]);
    for subtask in 0..3 {
        let expected = SubpartitionRange { start: subtask, end: subtask + 1 };
        assert_eq!(plan.input_range(0, subtask).subpartitions, expected);
    }
}

#[test]
fn both_sides_of_a_join_are_cut_at_the_same_places() {
    let edges = [(0, 2, Distribution::AllToAll), (1, 2, Distribution::AllToAll)];
    let inputs = [measured(2, &[80 * MIB, 0, 0, 0]), measured(5, &[0, 8 * MIB, 8 * MIB, 8 * MIB])];
    let plan = plan(&graph(&[2, 5, 0], &edges), &inputs);
    assert_eq!(plan.parallelism, 4);
    for subtask in 0..plan.parallelism {
        let [left, right] = [0, 1].map(|input| plan.input_range(input, subtask));
        assert_eq!(left.subpartitions, right.subpartitions);
        assert_eq!((left.producers(), right.producers()), (0..2, 0..5));
    }
}

#[test]
fn producers_divide_their_output_for_all_that_may_read_it() {
    let to = |consumer, distribution| graph(&[0, consumer], &[(0, 1, distribution)]);
    assert_eq!(subpartitions(&to(7, Distribution::AllToAll), 3), 7);
    assert_eq!(subpartitions(&to(5000, Distribution::AllToAll), 3), 1024);
    assert_eq!(subpartitions(&to(0, Distribution::AllToAll), 3), 128);
    assert_eq!(subpartitions(&to(7, Distribution::Broadcast), 3), 1);
    assert_eq!(subpartitions(&to(7, Distribution::Pointwise), 3), 3);
    assert_eq!(subpartitions(&to(7, Distribution::Pointwise), 9), 1);
    assert_eq!(subpartitions(&to(0, Distribution::Pointwise), 3), 1);
}

#[test]
fn all_producers_of_a_consumer_divide_alike_also_when_it_follows_one_of_them() {
    let edges = [
        (0, 2, Distribution::AllToAll),
        (0, 2, Distribution::Pointwise),
        (1, 2, Distribution::AllToAll),
    ];
    let graph = graph(&[0, 5, 0], &edges);
    let options = Options::default();
    let [first, second] = [0, 1]
        .map(|vertex| plan_vertex(&graph, JobVertexId(vertex), &[], Some(64 * MIB), &options))
        .map(|plan| plan.output_subpartitions);
    assert_eq!((first[0], second[0]), (128, 128));
}

proptest! {
    #[test]
    fn each_piece_of_an_input_is_read_once(
        pointwise in any::<bool>(),
        producers in 1_u32..40,
        consumers in 1_u32..40,
        bytes in proptest::collection::vec(0_u64..1000, 1..40),
    ) {
        let distribution =
            if pointwise { Distribution::Pointwise } else { Distribution::AllToAll };
        let graph = graph(&[producers, consumers], &[(0, 1, distribution)]);
        let plan = plan(&graph, &[measured(producers, &bytes)]);
        let mut reads = BTreeMap::new();
        for subtask in 0..plan.parallelism {
            let range = plan.input_range(0, subtask);
            for producer in range.producers() {
                for subpartition in range.subpartitions.start..range.subpartitions.end {
                    *reads.entry((producer, subpartition)).or_insert(0) += 1;
                }
            }
        }
        prop_assert!(reads.values().all(|count| *count == 1));
        prop_assert_eq!(reads.len(), producers as usize * bytes.len());
    }

    #[test]
    fn each_pointwise_consumer_has_something_to_read(
        producers in 1_u32..60, consumers in 1_u32..60,
    ) {
        let graph = graph(&[producers, consumers], &[(0, 1, Distribution::Pointwise)]);
        let plan = plan(&graph, &[unmeasured(producers, subpartitions(&graph, producers))]);
        for subtask in 0..consumers {
            let range = plan.input_range(0, subtask);
            prop_assert!(!range.producers().is_empty());
            prop_assert!(range.subpartitions.start < range.subpartitions.end);
        }
    }
}
