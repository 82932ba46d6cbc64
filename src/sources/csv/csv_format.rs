//! How the CSV that is read looks.

/// How the CSV looks that [`read_csv_with`](crate::Environment::read_csv_with) reads: unless told,
/// with commas, quotes (`"`, doubled within a field) and a header.
///
/// ```
/// # use regrow::*;
/// # fn build(env: &Environment) -> Written {
/// let tabs = CsvFormat::default().delimiter('\t').without_header().without_quotes();
/// env.read_csv_with::<(String, u64)>("pairs.tsv", tabs).write_csv("pairs")
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a format does nothing by itself"]
pub struct CsvFormat {
    delimiter: char,
    pub(super) header: Header,
    pub(super) quotes: Quotes,
}

/// What the first row of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// The names of the columns.
    Names,
    /// A row like any other.
    None,
}

/// What a quote is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quotes {
    /// At the beginning of a field it encloses the field.
    Enclose,
    /// A character like any other.
    Ordinary,
}

impl Default for CsvFormat {
    fn default() -> Self {
        Self { delimiter: ',', header: Header::Names, quotes: Quotes::Enclose }
    }
}

impl CsvFormat {
    /// Fields are separated by `delimiter`: an ASCII character that is no quote and no line break.
    pub fn delimiter(self, delimiter: char) -> Self {
        Self { delimiter, ..self }
    }

    /// The first row of a file is a row like any other: fields come by their order, to structs too.
    pub fn without_header(self) -> Self {
        Self { header: Header::None, ..self }
    }

    /// A quote is a character like any other, as in most files of tab-separated values: no field
    /// holds a delimiter or a line break.
    pub fn without_quotes(self) -> Self {
        Self { quotes: Quotes::Ordinary, ..self }
    }

    /// What is wrong with the format, if anything.
    pub(super) fn defect(&self) -> Option<String> {
        if self.delimiter.is_ascii() && !"\"\r\n".contains(self.delimiter) {
            return None;
        }
        Some(format!(
            "the delimiter {:?} cannot separate the fields of CSV: use an ASCII character that is no \
             quote and no line break",
            self.delimiter
        ))
    }

    /// The delimiter of a format without defect.
    pub(super) fn delimiter_byte(&self) -> u8 {
        u8::try_from(self.delimiter).unwrap_or(b',')
    }
}
