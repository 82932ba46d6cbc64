//! `collect`: gives the first records of a data set back to who started the job.
//!
//! Each task of the data set sends at most as many records as are asked for to one task, which keeps
//! them in its finish record. So they are durable, and recovered, like all that a task leaves.

use std::{any::type_name, marker::PhantomData};

use regrow_actors::task::TaskContext;
use regrow_protocol::{Accumulator, CollectedRecords, OpaqueBytes, TaskDeployment, TaskFailure};
use regrow_runtime::{Distribution, format_size};

use crate::{
    chain::{Chain, Consume},
    data_set::DataSet,
    environment::VertexInput,
    exchange::{PartitionWriter, RecordInput},
    record::Record,
    sinks::Written,
};

/// Most bytes of records that a job gives back under one name: they stand in a finish record, in the
/// log and in the job's result. What is more belongs into files.
pub const COLLECTED_BYTES_MAX: u64 = 1 << 20;

impl<C: Chain> DataSet<'_, C> {
    /// Gives the first `limit` records back in the result of the job, as `name`: those of the data
    /// set's first tasks. They are read by
    /// [`JobResult::collected`](crate::JobResult::collected); a job that collects more than
    /// [`COLLECTED_BYTES_MAX`] under a name fails.
    ///
    /// ```
    /// # use regrow::*;
    /// # fn build(env: &Environment) -> Written {
    /// env.read_text("words").count_by_key().collect("some counts", 10)
    /// # }
    /// ```
    pub fn collect(self, name: &str, limit: u64) -> Written {
        let environment = self.environment;
        environment.note_collected(name);
        let producer = self.end("first", move |chain, deployment| {
            chain.task(deployment, FirstRecords::new(deployment, limit))
        });
        let input = VertexInput { producer, distribution: Distribution::AllToAll };
        let first =
            DataSet::reading(environment, RecordInput::<C::Item>::new("first"), vec![input]);
        let name = name.to_owned();
        first.with_parallelism(1).end("collect", move |chain, deployment| {
            chain.task(deployment, Collect::new(name.clone(), limit))
        });
        Written::new()
    }
}

/// Sends the first records of a task on.
struct FirstRecords<R: ?Sized> {
    writer: PartitionWriter,
    left: u64,
    record_type: PhantomData<fn(&R)>,
}

impl<R: ?Sized> FirstRecords<R> {
    fn new(deployment: &TaskDeployment, limit: u64) -> Self {
        let writer = PartitionWriter::of(deployment, 0);
        Self { writer, left: limit, record_type: PhantomData }
    }
}

impl<R: Record + ?Sized> Consume<R> for FirstRecords<R> {
    #[inline]
    fn consume(&mut self, record: &R, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        self.writer.write(0, record, context)
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.writer.flush(context)
    }
}

/// Keeps the first records of all tasks.
struct Collect<R: ?Sized> {
    name: String,
    limit: u64,
    records: u64,
    bytes: Vec<u8>,
    record_type: PhantomData<fn(&R)>,
}

impl<R: ?Sized> Collect<R> {
    fn new(name: String, limit: u64) -> Self {
        Self { name, limit, records: 0, bytes: Vec::new(), record_type: PhantomData }
    }
}

impl<R: Record + ?Sized> Consume<R> for Collect<R> {
    fn consume(&mut self, record: &R, _context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        if self.records == self.limit {
            return Ok(());
        }
        record.write(&mut self.bytes)?;
        if self.bytes.len() as u64 > COLLECTED_BYTES_MAX {
            return Err(TaskFailure::unrecoverable(format!(
                "the first {} records to be collected as {:?} take {} bytes, of {} records asked \
                 for: at most {} are given back; ask for fewer, or write them to files",
                self.records + 1,
                self.name,
                self.bytes.len(),
                self.limit,
                format_size(COLLECTED_BYTES_MAX)
            )));
        }
        self.records += 1;
        Ok(())
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let collected = CollectedRecords {
            records: self.records,
            record_type: type_name::<R::Owned>().to_owned(),
            bytes: OpaqueBytes(std::mem::take(&mut self.bytes)),
        };
        context.metrics().records_out += collected.records;
        context.metrics().bytes_out += collected.bytes.0.len() as u64;
        context.accumulators().add(&self.name, Accumulator::Collected(collected));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::AccumulatorKind;

    use super::*;
    use crate::{accumulators::Accumulators, environment::Environment, test_job::TestJob};

    fn input(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn accumulators(
        build: impl FnOnce(&Environment) -> Written,
    ) -> Result<Accumulators, TaskFailure> {
        TestJob::new(1 << 20, build).accumulators().map(Accumulators::new)
    }

    #[test]
    fn the_first_records_come_back_in_order() {
        let file = input("d\na\nc\n");
        let found = accumulators(|env| env.read_text(file.path()).collect("lines", 2)).unwrap();
        assert_eq!(found.collected::<String>("lines").unwrap(), ["d", "a"]);
        let none = accumulators(|env| {
            env.read_text(file.path()).filter(str::is_empty).map(str::len).collect("none", 9)
        });
        assert_eq!(none.unwrap().collected::<usize>("none").unwrap(), [0; 0]);
    }

    #[test]
    fn records_of_several_tasks_come_in_the_order_of_tasks() {
        let words: Vec<String> = (0..500).map(|n| n.to_string()).collect();
        let file = input(&words.join("\n"));
        let found =
            accumulators(|env| env.read_text(file.path()).count_by_key().collect("counts", 1_000));
        let all = found.unwrap().collected::<(String, u64)>("counts").unwrap();
        assert_eq!(all.len(), 500);
        assert!(all.iter().all(|(_, count)| *count == 1));
        // Each of the three tasks gives its counts by word.
        assert_eq!(all.windows(2).filter(|pair| pair[0].0 > pair[1].0).count(), 2);
    }

    #[test]
    fn p4_more_than_the_limit_of_bytes_fails_the_job_with_the_limit() {
        let file = input(&"some text\n".repeat(200_000));
        let failure =
            accumulators(|env| env.read_text(file.path()).collect("lines", 1 << 40)).unwrap_err();
        let TaskFailure::Unrecoverable { message } = failure else { panic!("{failure}") };
        assert!(message.contains("1 mb") && message.contains("\"lines\""), "{message}");
    }

    #[test]
    fn two_collections_of_one_name_are_a_defect_of_the_job() {
        let environment = Environment::new(None, false);
        for _ in 0..2 {
            let _ = environment.read_text("/in").collect("lines", 1);
        }
        assert!(environment.into_job().defect.unwrap().contains("\"lines\""));
    }

    #[test]
    fn a_collection_beside_a_sum_of_its_name_is_found() {
        let file = input("a\n");
        let found = TestJob::new(1 << 20, |env| {
            env.read_text(file.path())
                .flat_map(|line, out| {
                    out.add("lines", 1);
                    out.emit(line.to_owned());
                })
                .collect("lines", 1)
        });
        let found = found.accumulators().unwrap();
        assert!(found.find("lines", AccumulatorKind::Sum).is_some());
        assert!(found.find("lines", AccumulatorKind::Collected).is_some());
    }
}
