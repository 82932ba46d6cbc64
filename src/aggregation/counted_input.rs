//! The consumer's half of `count_by_key`: adds up the counts of all producers.

use std::io;

use regrow_actors::task::{Step, Task, TaskContext};
use regrow_protocol::{TaskDeployment, TaskFailure};

use super::{
    key_counter::{Full, KeyCounter},
    sorted_counts::SortedCounts,
};
use crate::{
    chain::{Chain, ChainStart, Consume},
    record::{read_bytes, read_number},
};

/// Records that are passed on between two looks at the cancel flag.
const RECORDS_PER_CHECK: u32 = 4096;

/// The start of a vertex that reads the counts of another one.
pub struct CountedInput;

impl Chain for CountedInput {
    type Item = (String, u64);

    fn task<E: Consume<Self::Item>>(
        &self,
        deployment: &TaskDeployment,
        end: E,
    ) -> Result<Box<dyn Task>, TaskFailure> {
        let counts = Counts {
            counter: KeyCounter::new(deployment.memory_bytes / 2),
            spilled: SortedCounts::default(),
        };
        let output = Output { end, unchecked: 0, record: Default::default() };
        Ok(Box::new(CountedTask { counts, output }))
    }

    fn describe(&self, names: &mut Vec<&'static str>) {
        names.push("sum_counts");
    }

    fn start(&self) -> ChainStart<'_> {
        ChainStart::Edges
    }
}

struct CountedTask<E> {
    counts: Counts,
    output: Output<E>,
}

struct Counts {
    counter: KeyCounter,
    spilled: SortedCounts,
}

/// What stands behind the counts.
struct Output<E> {
    end: E,
    unchecked: u32,
    /// The record that is passed on, kept for its memory.
    record: (String, u64),
}

impl<E: Consume<(String, u64)>> Task for CountedTask<E> {
    fn run(&mut self, context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
        let mut block = Vec::new();
        while context.read_block(0, &mut block)? {
            if context.is_cancelled() {
                return Err(TaskFailure::Cancelled);
            }
            let mut rest = block.as_slice();
            while !rest.is_empty() {
                self.counts.add(&mut rest, context)?;
            }
        }
        self.pass_on(context)?;
        Ok(Step::Finished)
    }
}

impl<E: Consume<(String, u64)>> CountedTask<E> {
    fn pass_on(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        if self.counts.spilled.is_empty() {
            for (key, count) in self.counts.counter.sorted() {
                self.output.pass_on(key, count, context)?;
            }
            return self.output.end.finish(context);
        }
        if !self.counts.counter.is_empty() {
            self.counts.spill(context)?;
        }
        let mut merge = self.counts.spilled.merge().map_err(spill_failure)?;
        while let Some((key, count)) = merge.advance().map_err(spill_failure)? {
            self.output.pass_on(key, count, context)?;
        }
        self.output.end.finish(context)
    }
}

impl Counts {
    /// Takes one (key, count) off the front of a block.
    fn add(&mut self, block: &mut &[u8], context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let (Some(key), Some(count)) = (read_bytes(block), read_number(block)) else {
            return Err(TaskFailure::task(
                "a block of counts is cut off in the middle of a record",
            ));
        };
        if self.counter.add(key, count).is_ok() {
            return Ok(());
        }
        self.spill(context)?;
        // An empty counter takes any key.
        self.counter.add(key, count).map_err(|Full| {
            TaskFailure::task("an empty counter of keys has no room for a single key")
        })
    }

    fn spill(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let directory = context.spill_directory()?;
        self.spilled.spill(&mut self.counter, directory).map_err(spill_failure)
    }
}

impl<E: Consume<(String, u64)>> Output<E> {
    fn pass_on(
        &mut self,
        key: &[u8],
        count: u64,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        self.unchecked += 1;
        if self.unchecked == RECORDS_PER_CHECK {
            self.unchecked = 0;
            if context.is_cancelled() {
                return Err(TaskFailure::Cancelled);
            }
        }
        let key = std::str::from_utf8(key).map_err(|error| {
            TaskFailure::task(format!("a key of the counts is not valid UTF-8: {error}"))
        })?;
        self.record.0.clear();
        self.record.0.push_str(key);
        self.record.1 = count;
        self.end.consume(&self.record, context)
    }
}

fn spill_failure(error: io::Error) -> TaskFailure {
    TaskFailure::task(format!("cannot write or read counts in the spill directory: {error}"))
}
