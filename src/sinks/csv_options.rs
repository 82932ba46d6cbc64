//! How CSV is written.

/// How [`write_csv_with`](crate::DataSet::write_csv_with) writes: unless told, with commas and
/// without a header.
///
/// ```
/// # use regrow::*;
/// # fn build(env: &Environment) -> Written {
/// let options = CsvOptions::default().delimiter(';').header(["word", "count"]);
/// env.read_text("words").count_by_key().write_csv_with("counts", options)
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "options do nothing by themselves"]
pub struct CsvOptions {
    pub(super) delimiter: char,
    pub(super) header: CsvHeader,
}

/// The first line of each file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CsvHeader {
    /// There is none.
    None,
    /// The names of the fields of the records, which are structs.
    FieldNames,
    /// These names.
    Names(Vec<String>),
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { delimiter: ',', header: CsvHeader::None }
    }
}

impl CsvOptions {
    /// Puts `delimiter` between fields: an ASCII character that is no quote and no line break.
    pub fn delimiter(self, delimiter: char) -> Self {
        Self { delimiter, ..self }
    }

    /// Begins each file with a line of `names`, one per field.
    pub fn header<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self { header: CsvHeader::Names(names), ..self }
    }

    /// Begins each file with a line of the names of the records' fields. Only structs have them.
    pub fn header_of_fields(self) -> Self {
        Self { header: CsvHeader::FieldNames, ..self }
    }

    /// What is wrong with the options, if anything.
    pub(super) fn defect(&self) -> Option<String> {
        if !self.delimiter.is_ascii() || "\"\r\n".contains(self.delimiter) {
            return Some(format!(
                "the delimiter {:?} cannot stand between the fields of CSV: use an ASCII character \
                 that is no quote and no line break",
                self.delimiter
            ));
        }
        if self.header == CsvHeader::Names(Vec::new()) {
            return Some("a header of CSV needs at least one name".to_owned());
        }
        None
    }

    /// The delimiter as a byte; valid options have one.
    pub(super) fn delimiter_byte(&self) -> u8 {
        u8::try_from(self.delimiter).unwrap_or(b',')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_read_back_is_refused() {
        for delimiter in ['"', '\n', '\r', 'é'] {
            assert!(CsvOptions::default().delimiter(delimiter).defect().is_some());
        }
        assert!(CsvOptions::default().header([""; 0]).defect().is_some());
        let fine = CsvOptions::default().delimiter('\t').header(["a"]);
        assert_eq!((fine.defect(), fine.delimiter_byte()), (None, b'\t'));
    }
}
