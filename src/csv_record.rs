//! Records as lines of CSV.

use std::io::{self, Write};

use csv::{QuoteStyle, Terminator, Writer, WriterBuilder};

use crate::record::Record;

/// Bytes that a CSV file being written has in memory.
const BUFFER_BYTES: usize = 256 << 10;

/// A record that is a line of CSV.
pub trait CsvRecord: Record {
    /// Writes the fields of `record`.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn write_fields<W: Write>(record: Self::Ref<'_>, line: &mut CsvLines<W>) -> io::Result<()>;
}

/// Lines of CSV as RFC 4180 has it, with `\n`: a field is quoted if it holds a comma, a quote or a
/// line break.
pub struct CsvLines<W: Write> {
    writer: Writer<W>,
    number: Vec<u8>,
}

impl<W: Write> CsvLines<W> {
    /// Writes to `output`, through a buffer.
    pub(crate) fn new(output: W) -> Self {
        let writer = WriterBuilder::new()
            .quote_style(QuoteStyle::Necessary)
            .terminator(Terminator::Any(b'\n'))
            .buffer_capacity(BUFFER_BYTES)
            .flexible(true)
            .from_writer(output);
        Self { writer, number: Vec::new() }
    }

    /// Appends a field of text to the current line.
    ///
    /// # Errors
    /// When the file cannot be written.
    #[inline]
    pub fn text(&mut self, field: &str) -> io::Result<()> {
        self.writer.write_field(field).map_err(io::Error::from)
    }

    /// Appends a field with a number to the current line.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn number(&mut self, number: u64) -> io::Result<()> {
        self.number.clear();
        write!(self.number, "{number}")?;
        self.writer.write_field(&self.number).map_err(io::Error::from)
    }

    /// Ends the current line.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.writer.write_record(None::<&[u8]>).map_err(io::Error::from)
    }

    /// Writes what is buffered and gives the output back.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        // The error of `into_inner` keeps no more than the kind of what the output said.
        self.writer.flush()?;
        self.writer.into_inner().map_err(|error| io::Error::from(error.error().kind()))
    }
}

impl CsvRecord for String {
    fn write_fields<W: Write>(record: &str, line: &mut CsvLines<W>) -> io::Result<()> {
        line.text(record)
    }
}

impl CsvRecord for (String, u64) {
    #[inline]
    fn write_fields<W: Write>(
        (text, number): (&str, u64),
        line: &mut CsvLines<W>,
    ) -> io::Result<()> {
        line.text(text)?;
        line.number(number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(records: &[(&str, u64)]) -> String {
        let mut lines = CsvLines::new(Vec::new());
        for record in records {
            <(String, u64)>::write_fields(*record, &mut lines).unwrap();
            lines.end().unwrap();
        }
        String::from_utf8(lines.finish().unwrap()).unwrap()
    }

    #[test]
    fn fields_are_quoted_where_rfc_4180_asks_for_it() {
        let found = lines(&[("plain", 1), ("a,b", 2), ("say \"no\"", 3), ("a\nb\rc", 4), ("", 5)]);
        assert_eq!(found, "plain,1\n\"a,b\",2\n\"say \"\"no\"\"\",3\n\"a\nb\rc\",4\n,5\n");
    }

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::StorageFull, "cannot write the file x"))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_an_output_says_when_it_is_full_is_kept() {
        let mut lines = CsvLines::new(Full);
        lines.text("field").and_then(|()| lines.end()).unwrap();
        assert_eq!(lines.finish().err().unwrap().to_string(), "cannot write the file x");
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
