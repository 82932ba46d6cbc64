//! The start of a vertex that reads records of other vertices.

use std::marker::PhantomData;

use regrow_actors::task::{Step, Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};

use crate::{
    chain::{Chain, ChainStart, Consume},
    exchange::read_input,
    record::Record,
};

/// The start of a vertex that reads its inputs, one after the other, record by record.
pub(crate) struct RecordInput<R: ?Sized> {
    name: &'static str,
    /// How many of its inputs, from the first on.
    inputs_max: usize,
    record_type: PhantomData<fn(&R)>,
}

impl<R: ?Sized> RecordInput<R> {
    /// Makes one that reads all inputs, and is called `name` for people.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, inputs_max: usize::MAX, record_type: PhantomData }
    }

    /// Makes one that reads the first input, and leaves the others to what stands behind it.
    pub(crate) const fn of_first(name: &'static str) -> Self {
        Self { name, inputs_max: 1, record_type: PhantomData }
    }
}

impl<R: Record + ?Sized> Chain for RecordInput<R> {
    type Item = R;

    fn task<E: Consume<R>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        let inputs = deployment.inputs.len().min(self.inputs_max);
        Ok(Box::new(RecordTask { end, inputs, record_type: PhantomData }))
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        names.push(self.name);
    }

    fn start(&self) -> ChainStart<'_> {
        ChainStart::Edges
    }
}

struct RecordTask<R: ?Sized, E> {
    end: E,
    inputs: usize,
    record_type: PhantomData<fn(&R)>,
}

impl<R: Record + ?Sized, E: Consume<R>> Task for RecordTask<R, E> {
    fn run(&mut self, context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
        for input in 0..self.inputs {
            read_input(input, context, |rest, context| {
                let mut slot = None;
                self.end.consume(R::read(rest, &mut slot)?, context)
            })?;
        }
        self.end.finish(context)?;
        Ok(Step::Finished)
    }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::SubpartitionRange;

    use super::*;
    use crate::{exchange::Forward, test_context::TestContext};

    #[test]
    fn what_one_vertex_forwards_another_reads_in_order() {
        let mut producer = TestContext::new(0);
        producer.deployment.outputs[0].subpartitions = 1;
        producer.deployment.memory_bytes = 1 << 10;
        let records: Vec<(String, i64)> = (0..4_000).map(|n| (n.to_string(), -n)).collect();
        let mut forward = Forward::new(&producer.deployment, 0);
        for record in &records {
            forward.consume(record, &mut producer).unwrap();
        }
        Consume::<(String, i64)>::finish(&mut forward, &mut producer).unwrap();

        let mut consumer = TestContext::new(0);
        consumer.read_from(1, SubpartitionRange { start: 0, end: 1 });
        let blocks: Vec<Vec<u8>> = producer.subpartition(0).map(<[u8]>::to_vec).collect();
        assert!(blocks.len() > 10);
        consumer.set_input(0, blocks);
        let end = Forward::<(String, i64)>::new(&consumer.deployment, 0);
        let mut task = RecordInput::new("input").task(&consumer.deployment, end).unwrap();
        consumer.run(&mut *task).unwrap();
        // Four subpartitions in turn.
        let mut second = consumer.subpartition(1).flatten().copied().collect::<Vec<u8>>();
        let mut rest = second.as_slice();
        for record in records.iter().skip(1).step_by(4) {
            let mut slot = None;
            assert_eq!(<(String, i64)>::read(&mut rest, &mut slot).unwrap(), record);
        }
        assert!(rest.is_empty());
        second.truncate(1);
        consumer.set_input(0, [second]);
        let end = Forward::<(String, i64)>::new(&consumer.deployment, 0);
        let mut task = RecordInput::new("input").task(&consumer.deployment, end).unwrap();
        assert!(matches!(consumer.run(&mut *task), Err(TaskFailure::Unrecoverable { .. })));
    }
}
