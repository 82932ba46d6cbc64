//! Reads the lines that start within a range of a file.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::split::FileRange;

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Why lines cannot be read.
#[derive(Debug, Error)]
pub(super) enum ReadError {
    /// The system refuses it: another try may succeed.
    #[error("cannot read {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// The file is no text in UTF-8.
    #[error("{path} is not valid UTF-8 at byte {offset}; convert the file, for example with iconv")]
    NotUtf8 { path: PathBuf, offset: u64 },
    /// The file is shorter than it was when it was divided: what is left is not what the job reads.
    #[error(
        "{path} ends before byte {end}, up to which it was to be read: it was cut or replaced while \
         the job ran; run the job again when its input stays as it is"
    )]
    Shrunk { path: PathBuf, end: u64 },
    /// A line does not fit into the memory of the task.
    #[error(
        "a line of {path}, which starts at byte {offset}, is longer than {bytes_max} bytes; \
         raise taskmanager.memory.task.size to four times its length"
    )]
    LongLine { path: PathBuf, offset: u64, bytes_max: u64 },
}

/// Reads the lines that start within a range: a line that goes on beyond its end is read whole, one
/// that began before its start is left to the range before.
pub(super) struct LineReader<R> {
    path: PathBuf,
    input: R,
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

impl LineReader<File> {
    /// Opens the file of `range`.
    pub(super) fn open(range: &FileRange, line_bytes_max: u64) -> Result<Self, ReadError> {
        let path = Path::new(&range.path);
        File::open(path)
            .and_then(|file| Self::new(path, file, range.start..range.end, line_bytes_max))
            .map_err(|source| ReadError::Io { path: path.to_owned(), source })
    }
}

impl<R: Read + Seek> LineReader<R> {
    fn new(
        path: &Path,
        mut input: R,
        range: std::ops::Range<u64>,
        line_bytes_max: u64,
    ) -> io::Result<Self> {
        // The byte before the range tells whether a line starts with it.
        let position = range.start.saturating_sub(1);
        input.seek(SeekFrom::Start(position))?;
        Ok(Self {
            path: path.to_owned(),
            input,
            position,
            end: range.end,
            line_bytes_max,
            buffer: Vec::new(),
            given: 0,
            state: if range.start > 0 { State::Skipping } else { State::Reading },
        })
    }

    /// The next lines, whole, each with its line feed except perhaps the last one of the file; none
    /// at the end.
    pub(super) fn next_lines(&mut self) -> Result<Option<&str>, ReadError> {
        self.forget(self.given);
        self.given = 0;
        while self.state != State::Done {
            let at_end = self.fill()? == 0;
            if at_end && self.position + (self.buffer.len() as u64) < self.end {
                return Err(ReadError::Shrunk { path: self.path.clone(), end: self.end });
            }
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
                return Err(ReadError::LongLine {
                    path: self.path.clone(),
                    offset: self.position,
                    bytes_max: self.line_bytes_max,
                });
            }
        }
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
        std::str::from_utf8(&self.buffer[..length]).map_err(|error| ReadError::NotUtf8 {
            path: self.path.clone(),
            offset: self.position + error.valid_up_to() as u64,
        })
    }

    fn fill(&mut self) -> Result<usize, ReadError> {
        let length = self.buffer.len();
        self.buffer.resize(length + CHUNK_BYTES, 0);
        let read = loop {
            match self.input.read(&mut self.buffer[length..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        let read = read.map_err(|source| ReadError::Io { path: self.path.clone(), source })?;
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
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn reader(text: &[u8], start: u64, end: u64) -> LineReader<Cursor<&[u8]>> {
        LineReader::new(Path::new("text"), Cursor::new(text), start..end, 1 << 20).unwrap()
    }

    fn read(text: &[u8], start: u64, end: u64) -> Result<String, ReadError> {
        let mut reader = reader(text, start, end);
        let mut all = String::new();
        while let Some(lines) = reader.next_lines()? {
            all.push_str(lines);
        }
        Ok(all)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_line_is_read_by_the_split_in_which_it_starts(
            text in "([a-zäß]{0,9}\n{0,2}){0,40}",
            split_bytes in 1_usize..80,
        ) {
            let length = text.len();
            let mut joined = String::new();
            for start in (0..length).step_by(split_bytes) {
                let end = length.min(start + split_bytes) as u64;
                let start = start as u64;
                let lines = read(text.as_bytes(), start, end).unwrap();
                let first = joined.len() as u64;
                prop_assert!(lines.is_empty() || (start..end).contains(&first));
                joined.push_str(&lines);
            }
            prop_assert_eq!(joined, text);
        }
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
        assert!(matches!(error, ReadError::LongLine { offset: 0, .. }), "{error}");
    }
}
