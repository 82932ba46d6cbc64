//! Writes records as CSV.

use std::{any::type_name, io};

use csv::{ErrorKind, QuoteStyle, Terminator, Writer, WriterBuilder};
use regrow_protocol::TaskFailure;
use serde::Serialize;

use super::{
    csv_options::{CsvHeader, CsvOptions},
    file_sink::{Format, write_failure},
    staged_output::StagedOutput,
};

/// Lines of fields.
#[derive(Clone, Debug)]
pub(crate) struct Csv(pub(crate) CsvOptions);

/// A file of CSV that is being written.
pub(crate) struct CsvFile<W: io::Write> {
    writer: Writer<W>,
    /// Whether the next record must show that it has names for its fields.
    names_due: bool,
}

impl<R: Serialize + ?Sized> Format<R> for Csv {
    const EXTENSION: &'static str = "csv";

    type File = CsvFile<StagedOutput>;

    fn open(&self, output: StagedOutput, buffer_bytes: usize) -> Result<Self::File, TaskFailure> {
        CsvFile::begin(&self.0, output, buffer_bytes)
    }

    #[inline]
    fn append(&self, record: &R, file: &mut Self::File) -> Result<(), TaskFailure> {
        file.append(record)
    }

    fn close(file: Self::File) -> io::Result<StagedOutput> {
        into_output(file.writer)
    }
}

impl<W: io::Write> CsvFile<W> {
    fn begin(options: &CsvOptions, output: W, buffer_bytes: usize) -> Result<Self, TaskFailure> {
        let mut writer = builder(options).buffer_capacity(buffer_bytes).from_writer(output);
        if let CsvHeader::Names(names) = &options.header {
            writer.write_record(names).map_err(failure::<[String]>)?;
        }
        Ok(Self { writer, names_due: options.header == CsvHeader::FieldNames })
    }

    #[inline]
    fn append<R: Serialize + ?Sized>(&mut self, record: &R) -> Result<(), TaskFailure> {
        if self.names_due {
            check_names(record)?;
            self.names_due = false;
        }
        self.writer.serialize(record).map_err(failure::<R>)
    }
}

/// Lines of CSV as RFC 4180 has it, with `\n`: a field is quoted if it holds a delimiter, a quote
/// or a line break. Where there is a header, all lines have as many fields.
fn builder(options: &CsvOptions) -> WriterBuilder {
    let mut builder = WriterBuilder::new();
    builder
        .has_headers(options.header == CsvHeader::FieldNames)
        .delimiter(options.delimiter_byte())
        .quote_style(QuoteStyle::Necessary)
        .terminator(Terminator::Any(b'\n'))
        .flexible(options.header == CsvHeader::None);
    builder
}

/// A tuple has no names: its file would begin without the header that was asked for.
fn check_names<R: Serialize + ?Sized>(record: &R) -> Result<(), TaskFailure> {
    let written = |options: &CsvOptions| -> Result<usize, TaskFailure> {
        let mut writer = builder(options).from_writer(Vec::new());
        writer.serialize(record).map_err(failure::<R>)?;
        Ok(into_output(writer).map_err(write_failure)?.len())
    };
    let plain = CsvOptions::default();
    if written(&plain)? < written(&plain.clone().header_of_fields())? {
        return Ok(());
    }
    Err(TaskFailure::unrecoverable(format!(
        "the fields of a record of type {} have no names for the header of CSV: name them with \
         CsvOptions::header, or write a struct",
        type_name::<R>()
    )))
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
        type_name::<R>()
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written<R: Serialize>(options: &CsvOptions, records: &[R]) -> Result<String, TaskFailure> {
        let mut file = CsvFile::begin(options, Vec::new(), 1 << 10)?;
        for record in records {
            file.append(record)?;
        }
        Ok(String::from_utf8(into_output(file.writer).unwrap()).unwrap())
    }

    #[test]
    fn fields_are_quoted_where_rfc_4180_asks_for_it() {
        let records = [("plain", 1), ("a,b", 2), ("say \"no\"", 3), ("a\nb\rc", 4), ("", 5)];
        let found = written(&CsvOptions::default(), &records).unwrap();
        assert_eq!(found, "plain,1\n\"a,b\",2\n\"say \"\"no\"\"\",3\n\"a\nb\rc\",4\n,5\n");
        let found = written(&CsvOptions::default().delimiter(';'), &[("a;b", "a,b")]).unwrap();
        assert_eq!(found, "\"a;b\";a,b\n");
    }

    #[derive(Serialize)]
    struct Fruit {
        name: &'static str,
        count: u64,
    }

    #[test]
    fn a_header_is_that_of_the_fields_or_the_names_that_are_given() {
        let fruits = [Fruit { name: "apple", count: 2 }, Fruit { name: "pear", count: 1 }];
        let options = CsvOptions::default().header_of_fields();
        assert_eq!(written(&options, &fruits).unwrap(), "name,count\napple,2\npear,1\n");
        let options = CsvOptions::default().header(["fruit", "how many"]);
        assert_eq!(written(&options, &fruits).unwrap(), "fruit,how many\napple,2\npear,1\n");
    }

    #[test]
    fn p4_a_header_that_does_not_fit_the_records_is_refused() {
        let refused = |options: CsvOptions| {
            let failure = written(&options, &[("apple", 2)]).unwrap_err();
            let TaskFailure::Unrecoverable { message } = failure else { panic!("{failure}") };
            message
        };
        let message = refused(CsvOptions::default().header_of_fields());
        assert!(message.contains("have no names"), "{message}");
        let message = refused(CsvOptions::default().header(["fruit"]));
        assert!(message.contains("fields"), "{message}");
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
        let mut file = CsvFile::begin(&CsvOptions::default(), Full, 1 << 10).unwrap();
        file.append("field").unwrap();
        assert_eq!(into_output(file.writer).err().unwrap().to_string(), "cannot write the file x");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_reader_of_csv_gets_the_records_back(records: Vec<(String, u64)>) {
            let borrowed: Vec<_> = records.iter().map(|(key, n)| (key.as_str(), *n)).collect();
            let text = written(&CsvOptions::default(), &borrowed).unwrap();
            let mut reader =
                csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            let found: Vec<(String, u64)> = reader.deserialize().map(Result::unwrap).collect();
            prop_assert_eq!(found, records);
        }
    }
}
