//! The column of a CSV file that holds the key.

use std::{path::Path, sync::OnceLock};

use crate::{
    nearest::nearest,
    sources::{CsvFormat, InputPath, first_row},
};

/// The column of a file that holds the key: known once the first row of the file was looked at, which
/// the tasks that read the file do before they begin.
pub(super) struct KeyColumn {
    input: InputPath,
    format: CsvFormat,
    wanted: Wanted,
    found: OnceLock<usize>,
}

/// Which column is wanted.
pub(super) enum Wanted {
    /// That of this name; if there is none, that of this number, from 1.
    Name(String),
    /// That of this number, from 0.
    Index(usize),
}

impl Wanted {
    /// The column called `column`, where files begin with the names of columns; else, or if none is
    /// called so, the one of that number, from 1. `option` is what asked for it.
    pub(super) fn new(option: &str, column: &str, header: bool) -> Result<Self, String> {
        if header {
            return Ok(Self::Name(column.to_owned()));
        }
        let number = column.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        number.map(Self::Index).ok_or_else(|| {
            format!(
                "{option} {column} is no number of a column: the first one is 1; to name columns, pass \
                 --header, if the files begin with their names"
            )
        })
    }

    fn find(&self, path: &Path, row: &[String]) -> Result<usize, String> {
        let columns = row.len();
        match self {
            Self::Index(index) if *index < columns => Ok(*index),
            Self::Index(index) => {
                let path = path.display();
                Err(format!("{path} has no column {}: its first row has {columns}", index + 1))
            }
            Self::Name(name) => by_name(name, path, row),
        }
    }
}

/// Which of the columns in `row`, the header of `path`, is called `name` or has this number.
fn by_name(name: &str, path: &Path, row: &[String]) -> Result<usize, String> {
    let mut called = (0..row.len()).filter(|index| row[*index] == name);
    match (called.next(), called.next()) {
        (Some(index), None) => return Ok(index),
        (Some(first), Some(second)) => {
            return Err(format!(
                "{} has several columns {name}, the first two are number {} and number {}; give the \
                 number of the one that is meant instead of its name",
                path.display(),
                first + 1,
                second + 1
            ));
        }
        (None, _) => {}
    }
    let index = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    index.filter(|index| *index < row.len()).ok_or_else(|| {
        let hint = nearest(name, row.iter().map(String::as_str))
            .map_or_else(String::new, |near| format!("; did you mean {near}?"));
        format!("{} has no column {name}; it has: {}{hint}", path.display(), row.join(", "))
    })
}

impl KeyColumn {
    /// A column of the one file of `input`.
    pub(super) const fn new(input: InputPath, format: CsvFormat, wanted: Wanted) -> Self {
        Self { input, format, wanted, found: OnceLock::new() }
    }

    /// Looks the column up in the file.
    pub(super) fn find(&self) -> Result<(), String> {
        if self.found.get().is_none() {
            let (path, row) = first_row(&self.input, &self.format)?;
            // A file without rows has no key that could be missed.
            let index = if row.is_empty() { 0 } else { self.wanted.find(&path, &row)? };
            // Another task may have been faster, and found the same.
            let _ = self.found.set(index);
        }
        Ok(())
    }

    /// Which one it is, from 0; 0 as long as nobody has looked.
    #[inline]
    pub(super) fn index(&self) -> usize {
        self.found.get().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(path: &Path, column: &str, header: bool) -> Result<KeyColumn, String> {
        let format = CsvFormat::default();
        let format = if header { format } else { format.without_header() };
        let wanted = Wanted::new("--left-key", column, header)?;
        Ok(KeyColumn::new(InputPath::new(Path::new("/"), path), format, wanted))
    }

    fn found(text: &str, wanted: &str, header: bool) -> Result<usize, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let column = column(file.path(), wanted, header)?;
        column.find()?;
        Ok(column.index())
    }

    #[test]
    fn a_column_is_found_by_its_name_or_its_number() {
        assert_eq!(found("id,\"a, b\",c\n1,2,3\n", "a, b", true), Ok(1));
        assert_eq!(found("x,y\n", "2", false), Ok(1));
        assert_eq!(found("", "site", true), Ok(0));
    }

    #[test]
    fn a_name_of_two_columns_is_refused_and_their_numbers_are_told() {
        let text = "id,site,path,site\n1,2,3,4\n";
        let error = found(text, "site", true).unwrap_err();
        assert!(error.contains("several columns site"), "{error}");
        assert!(error.contains("number 2 and number 4; give the number"), "{error}");
        assert_eq!(found(text, "4", true), Ok(3));
        assert_eq!(found("id,1\n", "1", true), Ok(1));
        for number in ["0", "5"] {
            let error = found(text, number, true).unwrap_err();
            assert!(error.contains(&format!("no column {number}; it has: id, site")), "{error}");
        }
    }

    #[test]
    fn a_first_row_that_is_too_long_is_told_with_its_limit() {
        let long = "x".repeat(2 << 20);
        for text in [format!("id,{long}\n1,2\n"), format!("id,\"site\n{long}")] {
            let error = found(&text, "id", true).unwrap_err();
            assert!(
                error.contains("line 1: the first row is longer than 1048576 bytes"),
                "{error}"
            );
            assert!(error.contains("quote that is missing"), "{error}");
            assert!(!error.contains("taskmanager.memory"), "{error}");
        }
    }

    #[test]
    fn a_column_that_is_not_there_is_told_with_what_is() {
        let error = found("id,site,path\n", "sites", true).unwrap_err();
        assert!(
            error.ends_with("no column sites; it has: id, site, path; did you mean site?"),
            "{error}"
        );
        let error = found("id,site,path\n", "4", false).unwrap_err();
        assert!(error.contains("no column 4: its first row has 3"), "{error}");
        for column in ["0", "site", "-1", ""] {
            let error = found("id\n", column, false).unwrap_err();
            assert!(error.contains("--header") && error.contains("the first one is 1"), "{error}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_and_several_files_are_named() {
        let error = column(Path::new("/nowhere/a.csv"), "1", false).unwrap().find().unwrap_err();
        assert!(error.contains("/nowhere/a.csv"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        for name in ["a.csv", "b.csv"] {
            std::fs::write(directory.path().join(name), "x,y\n").unwrap();
        }
        let error = column(directory.path(), "1", false).unwrap().find().unwrap_err();
        assert!(error.contains("one file") && error.contains("b.csv"), "{error}");
    }
}
