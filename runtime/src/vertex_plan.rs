//! What is decided when a vertex is initialized.

use regrow_protocol::{InputId, PlanId, StableHasher, SubpartitionRange};
use serde::{Deserialize, Serialize};

/// Parallelism and input ranges of a vertex, decided once and logged (`JobVertexInitialized`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VertexPlan {
    /// Hash of all the rest.
    pub id: PlanId,
    /// Number of subtasks; at least 1.
    pub parallelism: u32,
    /// For each input edge, in the order of the edges, what each subtask reads; the inner list has
    /// one entry, valid for all, where all subtasks read the same.
    pub inputs: Vec<Vec<InputRange>>,
    /// For each output data set of the vertex, in order, into how many subpartitions it is divided.
    pub output_subpartitions: Vec<u32>,
}

/// What one subtask reads of one data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRange {
    /// First producer subtask.
    pub producers_start: u32,
    /// One after the last producer subtask.
    pub producers_end: u32,
    /// Which subpartitions of each.
    pub subpartitions: SubpartitionRange,
}

impl VertexPlan {
    /// Makes a plan and its id.
    ///
    /// The id is a hash over, in this order and each list with its length: the parallelism, the
    /// ranges of each input (producers start and end, subpartitions start and end), and the numbers
    /// of subpartitions.
    pub fn new(
        parallelism: u32,
        inputs: Vec<Vec<InputRange>>,
        output_subpartitions: Vec<u32>,
    ) -> Self {
        let mut hasher = StableHasher::new("vertex plan");
        hasher.number(u64::from(parallelism));
        hasher.number(inputs.len() as u64);
        for ranges in &inputs {
            hasher.number(ranges.len() as u64);
            for range in ranges {
                hasher.number(u64::from(range.producers_start));
                hasher.number(u64::from(range.producers_end));
                hasher.number(u64::from(range.subpartitions.start));
                hasher.number(u64::from(range.subpartitions.end));
            }
        }
        hasher.number(output_subpartitions.len() as u64);
        for &subpartitions in &output_subpartitions {
            hasher.number(u64::from(subpartitions));
        }
        Self { id: PlanId(hasher.finish()), parallelism, inputs, output_subpartitions }
    }

    /// What `subtask` reads of the input at index `input`.
    ///
    /// # Panics
    /// When the plan has no such input or subtask.
    pub fn input_range(&self, input: usize, subtask: u32) -> InputRange {
        assert!(subtask < self.parallelism, "subtask {subtask} of {}", self.parallelism);
        match self.inputs[input].as_slice() {
            [same] => *same,
            ranges => ranges[subtask as usize],
        }
    }
}

impl InputRange {
    /// The producers, ascending.
    pub fn producers(&self) -> std::ops::Range<u32> {
        self.producers_start..self.producers_end
    }
}

/// Names what is read of one data set: a hash over (subtask, generation) of each producer that is
/// read, ascending by subtask.
pub(crate) fn input_id(producers: impl Iterator<Item = (u32, u32)>) -> InputId {
    let mut hasher = StableHasher::new("input");
    for (subtask, generation) in producers {
        hasher.number(u64::from(subtask));
        hasher.number(u64::from(generation));
    }
    InputId(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(producers_end: u32, start: u32, end: u32) -> InputRange {
        let subpartitions = SubpartitionRange { start, end };
        InputRange { producers_start: 0, producers_end, subpartitions }
    }

    fn plan() -> VertexPlan {
        let inputs = vec![vec![range(3, 0, 5), range(3, 5, 6)], vec![range(2, 0, 1)]];
        VertexPlan::new(2, inputs, vec![128, 1])
    }

    #[test]
    fn the_plan_id_never_changes() {
        assert_eq!(plan().id, PlanId(9_771_298_529_626_692_318));
    }

    #[test]
    fn the_plan_id_tells_what_differs() {
        let VertexPlan { id, parallelism, inputs, output_subpartitions } = plan();
        let mut others = vec![
            VertexPlan::new(3, inputs.clone(), output_subpartitions.clone()),
            VertexPlan::new(parallelism, inputs.clone(), vec![128]),
        ];
        let changes: [fn(&mut InputRange); 4] = [
            |range| range.producers_start += 1,
            |range| range.producers_end += 1,
            |range| range.subpartitions.start += 1,
            |range| range.subpartitions.end += 1,
        ];
        for change in changes {
            let mut inputs = inputs.clone();
            change(&mut inputs[0][1]);
            others.push(VertexPlan::new(parallelism, inputs, output_subpartitions.clone()));
        }
        for (index, other) in others.iter().enumerate() {
            assert_ne!(other.id, id, "change {index}");
        }
    }

    #[test]
    fn one_range_is_valid_for_all_subtasks() {
        assert_eq!(plan().input_range(0, 1), range(3, 5, 6));
        assert_eq!(plan().input_range(1, 0), range(2, 0, 1));
        assert_eq!(plan().input_range(1, 1), range(2, 0, 1));
    }

    #[test]
    fn the_input_id_never_changes_and_tells_generations() {
        let id = |generation| input_id([(0, 0), (1, generation)].into_iter());
        assert_eq!(id(0), InputId(17_302_536_501_919_109_809));
        assert_ne!(id(1), id(0));
        assert_ne!(input_id([(0, 0)].into_iter()), input_id(std::iter::empty()));
    }
}
