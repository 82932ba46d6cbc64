//! Writes one JSON value a line.

use std::{any::type_name, io};

use regrow_protocol::TaskFailure;
use serde::Serialize;

use super::{buffered_file::BufferedFile, file_sink::Format, staged_output::StagedOutput};

/// Records as JSON, each with a line feed behind it; within a value there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonLines;

impl<R: Serialize + ?Sized> Format<R> for JsonLines {
    const EXTENSION: &'static str = "jsonl";

    type File = BufferedFile;

    fn open(&self, output: StagedOutput, buffer_bytes: usize) -> Result<Self::File, TaskFailure> {
        Ok(BufferedFile::new(output, buffer_bytes))
    }

    #[inline]
    fn append(&self, record: &R, file: &mut BufferedFile) -> Result<(), TaskFailure> {
        file.append(|buffer| append_line(record, buffer))
    }

    fn close(file: BufferedFile) -> io::Result<StagedOutput> {
        file.close()
    }
}

fn append_line<R: Serialize + ?Sized>(record: &R, buffer: &mut Vec<u8>) -> Result<(), TaskFailure> {
    serde_json::to_writer(&mut *buffer, record).map_err(|error| {
        TaskFailure::unrecoverable(format!(
            "a record of type {} cannot be written as JSON: {error}",
            type_name::<R>()
        ))
    })?;
    buffer.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_json_cannot_say_is_refused_with_its_type() {
        let map = BTreeMap::from([((1_u8, 2_u8), "x")]);
        let failure = append_line(&map, &mut Vec::new()).unwrap_err();
        let TaskFailure::Unrecoverable { message } = failure else { panic!("{failure}") };
        assert!(message.contains("BTreeMap") && message.contains("key"), "{message}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_reader_of_lines_gets_the_records_back(
            records: Vec<(String, Option<i64>, Vec<bool>)>,
        ) {
            let mut buffer = Vec::new();
            for record in &records {
                append_line(record, &mut buffer).unwrap();
            }
            let text = String::from_utf8(buffer).unwrap();
            let found: Vec<(String, Option<i64>, Vec<bool>)> =
                text.split_terminator('\n').map(|line| serde_json::from_str(line).unwrap()).collect();
            prop_assert_eq!(found, records);
        }
    }
}
