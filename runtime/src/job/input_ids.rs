//! Names of what attempts read, remembered so that many consumers of one data set cost one hash.

use std::{cell::RefCell, collections::BTreeMap};

use regrow_protocol::{DataSetId, ExecutionVertexId, InputId};

use super::recorded::Recorded;
use crate::input_id;

/// A data set and a range of its producers.
type ProducerRange = (DataSetId, u32, u32);

/// Computes input ids and remembers them while no generation of the producers changes.
#[derive(Debug, Default)]
pub(super) struct InputIds {
    /// By data set and range of producers: the generations of the producer vertex, and the id.
    known: RefCell<BTreeMap<ProducerRange, (u64, InputId)>>,
}

impl InputIds {
    /// What a subtask reads, one id per input edge.
    pub(super) fn of(&self, recorded: &Recorded, subtask: ExecutionVertexId) -> Vec<InputId> {
        let inputs = recorded.graph().inputs(subtask.vertex).enumerate();
        inputs
            .filter_map(|(input, (data_set, edge))| {
                let range = recorded.input_range(subtask, input)?;
                let producer = recorded.vertex(edge.producer);
                let key = (data_set, range.producers_start, range.producers_end);
                let known = self.known.borrow().get(&key).copied();
                if let Some((generations, id)) = known
                    && generations == producer.generations
                {
                    return Some(id);
                }
                let subtasks = range.producers();
                let id = input_id(subtasks.map(|subtask| {
                    let record = producer.subtasks.get(subtask as usize);
                    (subtask, record.map_or(0, |record| record.generation))
                }));
                self.known.borrow_mut().insert(key, (producer.generations, id));
                Some(id)
            })
            .collect()
    }
}
