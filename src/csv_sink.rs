//! Writes records as CSV, one file per task that has any.

use std::{io, marker::PhantomData};

use regrow_actors::task::TaskContext;
use regrow_protocol::{SinkTarget, TaskDeployment, TaskFailure};

use crate::{
    chain::Consume,
    csv_record::{CsvLines, CsvRecord},
    staged_output::StagedOutput,
};

/// The end of a chain that writes CSV.
pub(crate) struct CsvSink<R> {
    target: SinkTarget,
    lines: Option<CsvLines<StagedOutput>>,
    records: u64,
    record_type: PhantomData<fn(R)>,
}

impl<R: CsvRecord> CsvSink<R> {
    /// Makes the sink of an attempt whose vertex has one sink.
    pub(crate) fn new(deployment: &TaskDeployment) -> Result<Self, TaskFailure> {
        let Some(target) = deployment.sinks.first() else {
            return Err(TaskFailure::unrecoverable(format!(
                "attempt {} was sent without the directory of its sink",
                deployment.attempt
            )));
        };
        Ok(Self { target: target.clone(), lines: None, records: 0, record_type: PhantomData })
    }
}

impl<R: CsvRecord> Consume<R> for CsvSink<R> {
    fn consume(
        &mut self,
        record: R::Ref<'_>,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        let lines = if let Some(lines) = &mut self.lines {
            lines
        } else {
            let file = StagedOutput::create(context.deployment(), &self.target, "csv")?;
            self.lines.insert(CsvLines::new(file))
        };
        self.records += 1;
        R::write_fields(record, lines).and_then(|()| lines.end()).map_err(failure)
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let Some(lines) = self.lines.take() else { return Ok(()) };
        let file = lines.finish().map_err(failure)?.seal()?;
        let metrics = context.metrics();
        metrics.records_out += self.records;
        metrics.bytes_out += file.bytes;
        context.add_staged_file(file);
        Ok(())
    }
}

fn failure(error: io::Error) -> TaskFailure {
    TaskFailure::task(error.to_string())
}
