//! Writes records as CSV.

use std::io;

use csv::{ErrorKind, QuoteStyle, Terminator, Writer, WriterBuilder};
use regrow_protocol::TaskFailure;
use serde::Serialize;

use super::{
    file_sink::{Format, write_failure},
    staged_output::StagedOutput,
};

/// Lines of comma-separated fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Csv;

impl<R: Serialize + ?Sized> Format<R> for Csv {
    const EXTENSION: &'static str = "csv";

    type File = Writer<StagedOutput>;

    fn open(&self, output: StagedOutput, buffer_bytes: usize) -> Self::File {
        csv_writer(output, buffer_bytes)
    }

    #[inline]
    fn append(&self, record: &R, file: &mut Self::File) -> Result<(), TaskFailure> {
        file.serialize(record).map_err(|error| failure::<R>(error))
    }

    fn close(file: Self::File) -> io::Result<StagedOutput> {
        into_output(file)
    }
}

/// Lines of CSV as RFC 4180 has it, with `\n`, without a header: a field is quoted if it holds a
/// comma, a quote or a line break.
fn csv_writer<W: io::Write>(output: W, buffer_bytes: usize) -> Writer<W> {
    WriterBuilder::new()
        .has_headers(false)
        .quote_style(QuoteStyle::Necessary)
        .terminator(Terminator::Any(b'\n'))
        .buffer_capacity(buffer_bytes)
        .flexible(true)
        .from_writer(output)
}

/// Writes what is buffered and gives the output back.
fn into_output<W: io::Write>(mut writer: Writer<W>) -> io::Result<W> {
    // The error of `into_inner` keeps no more than the kind of what the output said.
    writer.flush()?;
    writer.into_inner().map_err(|error| io::Error::from(error.error().kind()))
}

fn failure<R: ?Sized>(error: csv::Error) -> TaskFailure {
    if let ErrorKind::Io(_) = error.kind() {
        return write_failure(error.into());
    }
    TaskFailure::unrecoverable(format!(
        "a record of type {} cannot be written as CSV: {error}",
        std::any::type_name::<R>()
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(records: &[(&str, u64)]) -> String {
        let mut writer = csv_writer(Vec::new(), 1 << 10);
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
        let mut writer = csv_writer(Full, 1 << 10);
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
