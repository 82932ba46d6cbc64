//! Writes records as CSV, one file per task that has any.

use std::{io, marker::PhantomData};

use csv::{QuoteStyle, Terminator, Writer, WriterBuilder};
use regrow_actors::task::TaskContext;
use regrow_protocol::{SinkTarget, TaskDeployment, TaskFailure};
use serde::Serialize;

use super::staged_output::StagedOutput;
use crate::chain::Consume;

/// Bytes that a CSV file being written has in memory.
const BUFFER_BYTES: usize = 256 << 10;

/// The end of a chain that writes CSV.
pub(crate) struct CsvSink<R: ?Sized> {
    target: SinkTarget,
    lines: Option<Writer<StagedOutput>>,
    records: u64,
    record_type: PhantomData<fn(&R)>,
}

impl<R: ?Sized> CsvSink<R> {
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

impl<R: Serialize + ?Sized + 'static> Consume<R> for CsvSink<R> {
    fn consume(&mut self, record: &R, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let lines = if let Some(lines) = &mut self.lines {
            lines
        } else {
            let file = StagedOutput::create(context.deployment(), &self.target, "csv")?;
            self.lines.insert(csv_writer(file))
        };
        self.records += 1;
        lines.serialize(record).map_err(|error| failure(error.into()))
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let Some(lines) = self.lines.take() else { return Ok(()) };
        let file = into_output(lines).map_err(failure)?.seal()?;
        let metrics = context.metrics();
        metrics.records_out += self.records;
        metrics.bytes_out += file.bytes;
        context.add_staged_file(file);
        Ok(())
    }
}

/// Lines of CSV as RFC 4180 has it, with `\n`, without a header: a field is quoted if it holds a
/// comma, a quote or a line break.
fn csv_writer<W: io::Write>(output: W) -> Writer<W> {
    WriterBuilder::new()
        .has_headers(false)
        .quote_style(QuoteStyle::Necessary)
        .terminator(Terminator::Any(b'\n'))
        .buffer_capacity(BUFFER_BYTES)
        .flexible(true)
        .from_writer(output)
}

/// Writes what is buffered and gives the output back.
fn into_output<W: io::Write>(mut writer: Writer<W>) -> io::Result<W> {
    // The error of `into_inner` keeps no more than the kind of what the output said.
    writer.flush()?;
    writer.into_inner().map_err(|error| io::Error::from(error.error().kind()))
}

fn failure(error: io::Error) -> TaskFailure {
    TaskFailure::task(error.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(records: &[(&str, u64)]) -> String {
        let mut writer = csv_writer(Vec::new());
        for record in records {
            writer.serialize(record).unwrap();
        }
        String::from_utf8(into_output(writer).unwrap()).unwrap()
    }

    #[test]
    fn fields_are_quoted_where_rfc_4180_asks_for_it() {
        let found = lines(&[("plain", 1), ("a,b", 2), ("say \"no\"", 3), ("a\nb\rc", 4), ("", 5)]);
        assert_eq!(found, "plain,1\n\"a,b\",2\n\"say \"\"no\"\"\",3\n\"a\nb\rc\",4\n,5\n");
    }

    struct Full;

    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::StorageFull, "cannot write the file x"))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_an_output_says_when_it_is_full_is_kept() {
        let mut writer = csv_writer(Full);
        writer.serialize("field").unwrap();
        assert_eq!(into_output(writer).err().unwrap().to_string(), "cannot write the file x");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_reader_of_csv_gets_the_records_back(records: Vec<(String, u64)>) {
            let borrowed: Vec<_> = records.iter().map(|(key, n)| (key.as_str(), *n)).collect();
            let text = lines(&borrowed);
            let mut reader =
                csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            let found: Vec<(String, u64)> = reader.deserialize().map(Result::unwrap).collect();
            prop_assert_eq!(found, records);
        }
    }
}
