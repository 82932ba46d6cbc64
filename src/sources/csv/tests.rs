//! Reads CSV as a job does.

use std::{fmt::Write as _, fs, io::Write as _, path::PathBuf};

use flate2::{Compression, write::GzEncoder};
use serde::Deserialize;

use super::*;
use crate::{chain::DiscoverSplits as _, sources::input_path::InputPath, test_job::TestJob};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Sale {
    id: u64,
    note: String,
    price: Option<i32>,
}

struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(directory.path().join(name), content).unwrap();
        }
        Self(directory)
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    /// The rows as `T`, sorted.
    fn read<T>(&self, format: CsvFormat) -> Result<Vec<T>, TaskFailure>
    where
        T: Serialize + DeserializeOwned + Send + Ord + 'static,
    {
        let job = TestJob::new(1 << 20, |env| {
            env.read_csv_with::<T>(self.path(), format).write_json_lines("/out")
        });
        let lines = job.lines()?;
        let mut rows: Vec<T> =
            lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        rows.sort();
        Ok(rows)
    }

    fn error(&self) -> String {
        let failure = self.read::<Sale>(CsvFormat::default()).unwrap_err();
        assert!(matches!(failure, TaskFailure::Unrecoverable { .. }), "{failure}");
        failure.to_string()
    }
}

fn sale(id: u64, note: &str, price: Option<i32>) -> Sale {
    Sale { id, note: note.to_owned(), price }
}

/// A file of several splits whose notes hold line breaks, and its rows.
fn large(rows: u16) -> (String, Vec<Sale>) {
    let mut text = "id,note,price\n".to_owned();
    let mut sales = Vec::new();
    for id in 0..rows {
        let note =
            format!("line {id}\n1,\"quoted\"\n,{}", "x".repeat(1_000 + usize::from(id) % 1_000));
        writeln!(text, "{id},\"{}\",{id}", note.replace('"', "\"\"")).unwrap();
        sales.push(sale(id.into(), &note, Some(id.into())));
    }
    (text, sales)
}

#[test]
fn columns_find_their_fields_by_name_in_each_file() {
    let files = Files::new(&[
        ("a.csv", b"id,note,price\r\n1,one,10\r\n\r\n2,\"t,w\"\"o\r\n\",\r\n"),
        ("b.csv", "\u{feff}\"price\",more,note,id\n-3,?,drei\u{e4},3".as_bytes()),
        ("c.csv", b"id,note,price\n"),
        ("d.csv", b""),
    ]);
    let expected =
        [sale(1, "one", Some(10)), sale(2, "t,w\"o\r\n", None), sale(3, "dreiä", Some(-3))];
    assert_eq!(files.read::<Sale>(CsvFormat::default()).unwrap(), expected);
}

#[test]
fn other_formats_are_read_as_they_are_said_to_be() {
    let files = Files::new(&[("a.tsv", b"1\t5\" pipe\n2\t\"\n")]);
    let format = CsvFormat::default().delimiter('\t').without_header().without_quotes();
    let expected = [(1, "5\" pipe".to_owned()), (2, "\"".to_owned())];
    assert_eq!(files.read::<(u64, String)>(format).unwrap(), expected);
    let files = Files::new(&[("a.csv", b"1;'one';\n2;two;20\n")]);
    let format = CsvFormat::default().delimiter(';').without_header();
    let expected = [sale(1, "'one'", None), sale(2, "two", Some(20))];
    assert_eq!(files.read::<Sale>(format).unwrap(), expected);
    let environment = Environment::new(None, false);
    let _ = environment.read_csv_with::<Sale>("/in", CsvFormat::default().delimiter('"'));
    assert!(environment.into_job().defect.unwrap().contains("delimiter '\"'"));
}

#[test]
fn rows_with_line_breaks_are_read_once_whatever_the_splits() {
    let (text, expected) = large(6_000);
    let files = Files::new(&[("a.csv", text.as_bytes()), ("b.csv", b"id,note,price\n")]);
    assert!(text.len() > 8 << 20);
    assert_eq!(files.read::<Sale>(CsvFormat::default()).unwrap(), expected);
}

#[test]
fn a_compressed_file_is_read_as_a_plain_one() {
    let (text, expected) = large(50);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    let files = Files::new(&[("a.csv.gz", &encoder.finish().unwrap())]);
    assert_eq!(files.read::<Sale>(CsvFormat::default()).unwrap(), expected);
}

#[test]
fn a_sample_holds_whole_rows_of_each_split() {
    let (text, expected) = large(6_000);
    let files = Files::new(&[("a.csv", text.as_bytes())]);
    let input = InputPath::new(&files.path(), Path::new("a.csv"));
    let csv = Csv::<Sale> { format: CsvFormat::default(), record_type: PhantomData };
    let source = FileSource::new(input, csv);
    let mut found = Vec::new();
    for split in source.sample_splits().unwrap() {
        for range in crate::sources::file_range::ranges(&split).unwrap() {
            let mut reader =
                CsvReader::<Sale>::open(range, &CsvFormat::default(), 1 << 20).unwrap();
            while let Some(sale) = reader.next_value().unwrap() {
                assert_eq!(sale, expected[usize::try_from(sale.id).unwrap()]);
                found.push(sale.id);
            }
        }
    }
    assert!((60..200).contains(&found.len()) && found.is_sorted(), "{found:?}");
}

#[test]
fn a_row_of_too_few_or_many_fields_is_named_by_file_and_line() {
    for (row, fields) in [("7", "1 field,"), ("7,a,b,c", "4 fields")] {
        let (mut text, _) = large(4_000);
        let line = text.lines().count() + 2;
        write!(text, "\r\n{row}\n8,eight,8\n").unwrap();
        let error = Files::new(&[("a.csv", text.as_bytes())]).error();
        assert!(error.contains(&format!("a.csv, line {line}: the row has {fields}")), "{error}");
        assert!(error.contains("header of the file has 3 fields: id, note, price"), "{error}");
    }
    let files = Files::new(&[("a.csv", b"1,2\n3\n")]);
    let format = CsvFormat::default().without_header();
    let error = files.read::<Vec<u64>>(format).unwrap_err().to_string();
    assert!(error.contains("a.csv, line 2") && error.contains("first row of the file"), "{error}");
}

#[test]
fn a_field_that_does_not_parse_is_named_by_line_and_column() {
    let error = Files::new(&[("a.csv", b"id,note,price\n1,\"a\nb\",1\n2,c,cheap\n")]).error();
    let expected = "a.csv, line 4: column 3 (price) is \"cheap\": invalid digit";
    assert!(error.contains(expected), "{error}");
    let error = Files::new(&[("a.csv", b"id,price\n1,1\n")]).error();
    assert!(error.contains("line 2") && error.contains("missing field `note`"), "{error}");
    assert!(error.contains("its columns are id, price"), "{error}");
}

#[test]
fn text_that_is_no_utf_8_is_named_by_line_and_column() {
    let error = Files::new(&[("a.csv", b"id,note,price\r\n1,a,1\r\n2,\xff,2\r\n")]).error();
    assert!(error.contains("a.csv, line 3: column 2 is not valid UTF-8"), "{error}");
}

#[test]
fn p4_a_quote_that_is_never_closed_is_named_by_its_line() {
    let error = Files::new(&[("a.csv", b"id,note,price\n1,a,1\n2,\"b,2\n3,c,3\n")]).error();
    assert!(error.contains("a.csv, line 3: a quoted field begins here"), "{error}");
    let (mut text, _) = large(10);
    let line = text.lines().count() + 1;
    text.push_str("11,\"eleven,11\n");
    text.push_str(&"12,twelve,12\n".repeat(500_000));
    let error = Files::new(&[("a.csv", text.as_bytes())]).error();
    let expected = format!("line {line}, is longer than 1048576 bytes");
    assert!(error.contains(&expected) && error.contains("quote that is missing"), "{error}");
}

#[test]
fn p4_a_file_that_changed_after_it_was_listed_is_refused() {
    let (text, _) = large(4_000);
    let files = Files::new(&[("a.csv", text.as_bytes())]);
    let input = InputPath::new(&files.path(), Path::new("a.csv"));
    let csv = Csv::<Sale> { format: CsvFormat::default(), record_type: PhantomData };
    let splits = FileSource::new(input, csv).discover_splits().unwrap();
    fs::write(files.path().join("a.csv"), &text[..text.len() - 9]).unwrap();
    for split in splits {
        for range in crate::sources::file_range::ranges(&split).unwrap() {
            let error = CsvReader::<Sale>::open(range, &CsvFormat::default(), 1 << 20).err();
            assert!(matches!(error, Some(ReadError::Changed { .. })));
        }
    }
}
