//! What a worker is told of an attempt.

use std::{collections::BTreeSet, sync::Arc};

use regrow_protocol::{
    DataDirectoryId, DataSetId, DirectoryLocation, ExecutionAttemptId, ExecutionVertexId,
    InputGate, JobVertexId, OutputSpec, PartitionId, PinnedSplits, PlanId, ProducerPartition,
    SinkTarget, TaskDeployment,
};

use super::{Job, Output};
use crate::{InputRange, Lsn};

/// The finished partitions of a range of producers.
#[derive(Clone, Debug)]
pub(super) struct ProducerTable {
    /// The newest finish of their vertex that is in it.
    newest: Lsn,
    partitions: Arc<[ProducerPartition]>,
    /// Where they lie, each once.
    directories: Arc<[DataDirectoryId]>,
}

impl Job {
    /// Describes an attempt whose inputs are all finished.
    pub(super) fn deployment(
        &mut self,
        attempt: ExecutionAttemptId,
        splits: PinnedSplits,
    ) -> TaskDeployment {
        let vertex = attempt.vertex;
        let (inputs, locations) = self.input_gates(attempt.execution_vertex());
        let submission = &self.recorded.facts.submission;
        let plan = self.recorded.plan(vertex);
        let subpartitions = plan.map(|plan| plan.output_subpartitions.as_slice());
        let outputs = submission.graph.outputs(vertex).zip(subpartitions.unwrap_or_default());
        TaskDeployment {
            attempt,
            job: submission.job.clone(),
            job_name: submission.job_name.clone(),
            arguments: submission.arguments.clone(),
            graph_hash: self.graph_hash,
            parallelism: plan.map_or(1, |plan| plan.parallelism),
            plan: plan.map_or(PlanId(0), |plan| plan.id),
            inputs,
            outputs: outputs
                .map(|((data_set, _), subpartitions)| OutputSpec {
                    data_set,
                    subpartitions: *subpartitions,
                })
                .collect(),
            sinks: self.sink_targets(vertex),
            splits,
            ledger: submission.ledger.clone(),
            memory_bytes: self.options.task_memory_bytes,
            locations,
        }
    }

    fn sink_targets(&self, vertex: JobVertexId) -> Vec<SinkTarget> {
        let Output::Prepared(directories) = &self.output else { return Vec::new() };
        let sinks = (0..).zip(&self.recorded.graph().sinks).zip(directories);
        sinks
            .filter(|((_, sink), _)| sink.vertex == vertex)
            .map(|((sink, _), directory)| SinkTarget { sink, staging_directory: directory.clone() })
            .collect()
    }

    /// What a subtask reads, and where the data directories of it are served.
    fn input_gates(
        &mut self,
        subtask: ExecutionVertexId,
    ) -> (Vec<InputGate>, Vec<DirectoryLocation>) {
        let ids = self.input_ids.of(&self.recorded, subtask);
        let edges: Vec<(DataSetId, JobVertexId)> = self
            .recorded
            .graph()
            .inputs(subtask.vertex)
            .map(|(data_set, edge)| (data_set, edge.producer))
            .collect();
        let mut gates = Vec::new();
        let mut read = BTreeSet::new();
        for (input, ((data_set, producer), id)) in edges.into_iter().zip(ids).enumerate() {
            let Some(range) = self.recorded.input_range(subtask, input) else { continue };
            let ProducerTable { partitions, directories, .. } =
                self.producer_table(data_set, producer, range);
            read.extend(directories.iter().copied());
            gates.push(InputGate {
                data_set,
                input: id,
                subpartitions: range.subpartitions,
                producers: partitions,
            });
        }
        let located = read.into_iter().filter_map(|data_directory| {
            let address = self.workers.shuffle_address(data_directory)?;
            Some(DirectoryLocation { data_directory, address })
        });
        let locations = located.collect();
        (gates, locations)
    }

    /// The finished partitions of a range of producers; one table for all who read the same.
    fn producer_table(
        &mut self,
        data_set: DataSetId,
        vertex: JobVertexId,
        range: InputRange,
    ) -> ProducerTable {
        let newest = self.recorded.vertex(vertex).last_finish;
        let key = (data_set, range.producers_start, range.producers_end);
        if let Some(known) = self.producers.get(&key)
            && known.newest == newest
        {
            return known.clone();
        }
        let finishes = range
            .producers()
            .filter_map(|subtask| self.recorded.finish(ExecutionVertexId { vertex, subtask }));
        let partitions: Arc<[ProducerPartition]> = finishes
            .map(|finish| ProducerPartition {
                partition: PartitionId { attempt: finish.record.attempt, data_set },
                data_directory: finish.data_directory,
            })
            .collect();
        let directories: BTreeSet<DataDirectoryId> =
            partitions.iter().map(|producer| producer.data_directory).collect();
        let directories = directories.into_iter().collect();
        let table = ProducerTable { newest, partitions, directories };
        if range.producers_end - range.producers_start > 1 {
            self.producers.insert(key, table.clone());
        }
        table
    }
}
