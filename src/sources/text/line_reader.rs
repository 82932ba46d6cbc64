//! Reads the lines that start within a range of a file.

use crate::sources::{file_input::FileInput, file_range::FileRange, read_error::ReadError};

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// What some programs write in front of a text: the byte order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads the lines that start within a range: a line that goes on beyond its end is read whole, one
/// that began before its start is left to the range before.
pub(crate) struct LineReader {
    input: FileInput,
    /// Offset in the file of the first byte of `buffer`.
    position: u64,
    /// No line that starts here or later is read.
    end: u64,
    line_bytes_max: u64,
    /// What was read and not given away, after the `given` bytes that were.
    buffer: Vec<u8>,
    given: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Looks for the end of the line that began before the range.
    Skipping,
    Reading,
    Done,
}

impl LineReader {
    /// Opens the file of `range`, whose lines have at most `line_bytes_max`.
    pub(super) fn open(range: &FileRange, line_bytes_max: u64) -> Result<Self, ReadError> {
        // The byte before the range tells whether a line starts with it.
        let position = range.start.saturating_sub(1);
        Ok(Self {
            input: FileInput::open(range, position)?,
            position,
            end: range.end,
            line_bytes_max,
            buffer: Vec::new(),
            given: 0,
            state: if range.start > 0 { State::Skipping } else { State::Reading },
        })
    }

    /// The next lines, whole, each with its line feed except perhaps the last one of the file; none
    /// at the end. A byte order mark at the start of the file is no part of its first line.
    pub(super) fn next_lines(&mut self) -> Result<Option<&str>, ReadError> {
        self.forget(self.given);
        self.given = 0;
        while self.state != State::Done {
            let at_end = self.fill()? == 0;
            if self.state == State::Skipping && !self.skip(at_end) {
                continue;
            }
            let lines = self.whole_lines(at_end);
            if at_end {
                self.state = State::Done;
            }
            if lines > 0 {
                return self.give(lines).map(Some);
            }
            if self.buffer.len() as u64 > self.line_bytes_max {
                return Err(ReadError::TooLong {
                    path: self.input.path().to_owned(),
                    what: "line",
                    place: format!("byte {}", self.position),
                    bytes_max: self.line_bytes_max,
                    hint: "",
                });
            }
        }
        self.input.check_unchanged()?;
        Ok(None)
    }

    /// Drops what belongs to the range before; false while its line goes on.
    fn skip(&mut self, at_end: bool) -> bool {
        let line_end = memchr::memchr(b'\n', &self.buffer);
        self.forget(line_end.map_or(self.buffer.len(), |index| index + 1));
        if at_end {
            self.state = State::Done;
        } else if line_end.is_some() {
            self.state = State::Reading;
        }
        self.state == State::Reading
    }

    /// How many bytes at the start of the buffer are whole lines of the range. Ends the reading when
    /// they reach its end.
    fn whole_lines(&mut self, at_end: bool) -> usize {
        if self.position >= self.end {
            self.state = State::Done;
            return 0;
        }
        // Index of the last byte at which a line of the range can start.
        let last_start = usize::try_from(self.end - self.position - 1).unwrap_or(usize::MAX);
        if let Some(tail) = self.buffer.get(last_start..)
            && let Some(line_end) = memchr::memchr(b'\n', tail)
        {
            self.state = State::Done;
            return last_start + line_end + 1;
        }
        if at_end {
            return self.buffer.len();
        }
        memchr::memrchr(b'\n', &self.buffer).map_or(0, |line_end| line_end + 1)
    }

    fn give(&mut self, length: usize) -> Result<&str, ReadError> {
        self.given = length;
        let is_start = self.position == 0 && self.buffer.starts_with(BYTE_ORDER_MARK);
        let start = if is_start { BYTE_ORDER_MARK.len() } else { 0 };
        std::str::from_utf8(&self.buffer[start..length]).map_err(|error| ReadError::NotUtf8 {
            path: self.input.path().to_owned(),
            offset: self.position + (start + error.valid_up_to()) as u64,
        })
    }

    fn fill(&mut self) -> Result<usize, ReadError> {
        let length = self.buffer.len();
        self.buffer.resize(length + CHUNK_BYTES, 0);
        let read = self.input.read(&mut self.buffer[length..])?;
        self.buffer.truncate(length + read);
        Ok(read)
    }

    fn forget(&mut self, bytes: usize) {
        self.buffer.drain(..bytes);
        self.position += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    struct Text {
        directory: tempfile::TempDir,
    }

    impl Text {
        fn new(text: &[u8]) -> Self {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join("text"), text).unwrap();
            Self { directory }
        }

        fn read(&self, start: u64, end: u64) -> Result<String, ReadError> {
            let path = self.directory.path().join("text");
            let range = FileRange { path, start, end, stamp: None, first_line: 0 };
            let mut reader = LineReader::open(&range, 1 << 20)?;
            let mut all = String::new();
            while let Some(lines) = reader.next_lines()? {
                all.push_str(lines);
            }
            Ok(all)
        }
    }

    fn read(text: &[u8], start: u64, end: u64) -> Result<String, ReadError> {
        Text::new(text).read(start, end)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn every_line_is_read_by_the_split_in_which_it_starts(
            text in "([a-zäß]{0,9}\n{0,2}){0,40}",
            split_bytes in 1_usize..80,
        ) {
            let length = text.len();
            let file = Text::new(text.as_bytes());
            let mut joined = String::new();
            for start in (0..length).step_by(split_bytes) {
                let end = length.min(start + split_bytes) as u64;
                let start = start as u64;
                let lines = file.read(start, end).unwrap();
                let first = joined.len() as u64;
                prop_assert!(lines.is_empty() || (start..end).contains(&first));
                joined.push_str(&lines);
            }
            prop_assert_eq!(joined, text);
        }
    }

    #[test]
    fn a_byte_order_mark_is_dropped_at_the_start_of_a_file_alone() {
        let text = "\u{feff}a \u{feff}b\n\u{feff}c\n";
        let file = Text::new(text.as_bytes());
        let length = text.len() as u64;
        for split_bytes in 1..=length {
            let lines: String = (0..length.div_ceil(split_bytes))
                .map(|split| split * split_bytes)
                .map(|start| file.read(start, length.min(start + split_bytes)).unwrap())
                .collect();
            assert_eq!(lines, "a \u{feff}b\n\u{feff}c\n", "splits of {split_bytes} bytes");
        }
        for (text, expected) in
            [("\u{feff}", ""), ("\u{feff}\na", "\na"), ("\u{feff}\u{feff}", "\u{feff}")]
        {
            assert_eq!(read(text.as_bytes(), 0, text.len() as u64).unwrap(), expected);
        }
        let error = read(b"\xef\xbb\xbfa\xff\n", 0, 6).unwrap_err();
        assert!(matches!(error, ReadError::NotUtf8 { offset: 4, .. }), "{error}");
    }

    #[test]
    fn lines_longer_than_a_chunk_are_read_whole() {
        let mut text = vec![b'a'; 3 * CHUNK_BYTES];
        text.extend_from_slice(b"\nb\n");
        let length = text.len() as u64;
        assert_eq!(read(&text, 0, 10).unwrap().len() as u64, length - 2);
        assert_eq!(read(&text, 10, length).unwrap(), "b\n");
        assert_eq!(read(&text, 10, length - 2).unwrap(), "");
    }

    #[test]
    fn invalid_text_is_named_with_its_offset_in_the_file() {
        let error = read(b"first\nsec\xffond\n", 3, 14).unwrap_err();
        assert!(matches!(error, ReadError::NotUtf8 { offset: 9, .. }), "{error}");
    }

    #[test]
    fn p4_a_file_that_was_cut_after_it_was_divided_is_no_shorter_input() {
        for start in [0, 2, 4, 8, 20] {
            let error = read(b"one\ntwo\n", start, 30).unwrap_err();
            assert!(matches!(error, ReadError::Shrunk { end: 30, .. }), "{error}");
        }
        assert_eq!(read(b"one\ntwo\n", 0, 8).unwrap(), "one\ntwo\n");
        assert_eq!(read(b"one\ntwo\nmore", 2, 8).unwrap(), "two\n");
    }

    #[test]
    fn a_line_beyond_memory_is_refused_with_its_start() {
        let text = vec![b'a'; 2 << 20];
        let error = read(&text, 0, 100).unwrap_err();
        assert!(matches!(error, ReadError::TooLong { .. }), "{error}");
        assert!(error.to_string().contains("starts at byte 0"), "{error}");
    }
}
