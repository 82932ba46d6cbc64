//! Writes one record a line.

use std::{
    any::type_name,
    fmt::Display,
    io::{self, Write as _},
};

use memchr::memchr;
use regrow_protocol::TaskFailure;

use super::{buffered_file::BufferedFile, file_sink::Format, staged_output::StagedOutput};

/// Records as they are displayed, each with a line feed behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text;

impl<R: Display + ?Sized> Format<R> for Text {
    const EXTENSION: &'static str = "txt";

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

/// Appends a record and a line feed. What a reader of lines would take for something else is
/// refused: a line feed in a record, and a carriage return at its end.
fn append_line<R: Display + ?Sized>(record: &R, buffer: &mut Vec<u8>) -> Result<(), TaskFailure> {
    let start = buffer.len();
    write!(buffer, "{record}").map_err(|error| {
        TaskFailure::unrecoverable(format!(
            "a record of type {} cannot be displayed: {error}",
            type_name::<R>()
        ))
    })?;
    let line = &buffer[start..];
    if memchr(b'\n', line).is_some() || line.ends_with(b"\r") {
        return Err(line_break(line));
    }
    buffer.push(b'\n');
    Ok(())
}

fn line_break(line: &[u8]) -> TaskFailure {
    /// As much of a record as helps to find it.
    const SHOWN_CHARS: usize = 80;
    let shown: String = String::from_utf8_lossy(line).chars().take(SHOWN_CHARS).collect();
    TaskFailure::unrecoverable(format!(
        "a record holds a line break, so that write_text would make more than one line of it, or \
         another one: it begins {shown:?}; use write_csv or write_json_lines, which tell it apart, \
         or replace it before"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_a_line() {
        let mut buffer = Vec::new();
        append_line("one\rtwo", &mut buffer).unwrap();
        append_line("", &mut buffer).unwrap();
        append_line(&-7, &mut buffer).unwrap();
        assert_eq!(buffer, b"one\rtwo\n\n-7\n");
    }

    #[test]
    fn p4_a_record_that_would_read_back_as_another_is_refused() {
        for record in ["a\nb", "\n", "a\r"] {
            let failure = append_line(record, &mut Vec::new()).unwrap_err();
            let TaskFailure::Unrecoverable { message } = failure else { panic!("{failure}") };
            assert!(message.contains("line break") && message.contains("write_csv"), "{message}");
        }
    }
}
