//! The bytes of a file that a range is of.

use std::{
    fs::File,
    io::{self, Read, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;

use super::{file_range::FileRange, input_file::FileStamp, read_error::ReadError};

/// The bytes of a file that a range is of, as long as the file is the one that was listed. A
/// compressed file gives its content.
pub(super) struct FileInput {
    path: PathBuf,
    stream: Stream,
    stamp: Option<FileStamp>,
    /// Offset of what is read next.
    position: u64,
    /// Before this the file does not end.
    required: u64,
}

enum Stream {
    Plain(File),
    /// All members, one after the other.
    Gzip(Box<MultiGzDecoder<File>>),
}

impl FileInput {
    /// Opens the file of `range` at `position`; a compressed one at its beginning.
    pub(super) fn open(range: &FileRange, position: u64) -> Result<Self, ReadError> {
        let path = range.path.clone();
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ReadError::Gone { path });
            }
            Err(source) => return Err(ReadError::Io { path, source }),
        };
        let (stream, position, required) = if range.is_gzip() {
            (Stream::Gzip(Box::new(MultiGzDecoder::new(file))), 0, 0)
        } else {
            if let Err(source) = file.seek(SeekFrom::Start(position)) {
                return Err(ReadError::Io { path, source });
            }
            (Stream::Plain(file), position, range.end)
        };
        let input = Self { path, stream, stamp: range.stamp, position, required };
        input.check_unchanged()?;
        Ok(input)
    }

    /// Where the file lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Offset of what is read next.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Reads some bytes into `buffer`; 0 at the end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let read = loop {
            let result = match &mut self.stream {
                Stream::Plain(file) => file.read(buffer),
                Stream::Gzip(decoder) => decoder.read(buffer),
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        let read = read.map_err(|source| self.failure(source))?;
        if read == 0 && !buffer.is_empty() && self.position < self.required {
            self.check_unchanged()?;
            return Err(ReadError::Shrunk { path: self.path.clone(), end: self.required });
        }
        self.position += read as u64;
        Ok(read)
    }

    /// Checks that the file is what was listed; to be asked once more when all was read.
    pub(super) fn check_unchanged(&self) -> Result<(), ReadError> {
        let Some(listed) = self.stamp else { return Ok(()) };
        let file = match &self.stream {
            Stream::Plain(file) => file,
            Stream::Gzip(decoder) => decoder.get_ref(),
        };
        let path = || self.path.clone();
        let metadata = file.metadata().map_err(|source| ReadError::Io { path: path(), source })?;
        let found = FileStamp::of(&metadata);
        if found != listed {
            return Err(ReadError::Changed { path: path(), listed, found });
        }
        Ok(())
    }

    fn failure(&self, source: io::Error) -> ReadError {
        let (path, offset) = (self.path.clone(), self.position);
        let is_damage = matches!(
            source.kind(),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
        );
        match self.stream {
            Stream::Gzip(_) if is_damage => ReadError::BadGzip { path, offset, source },
            Stream::Gzip(_) | Stream::Plain(_) => ReadError::Io { path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use flate2::{Compression, write::GzEncoder};

    use super::*;
    use crate::sources::input_file::InputFile;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn listed(name: &str, bytes: &[u8]) -> (tempfile::TempDir, FileRange) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        let file = InputFile::look(path).unwrap();
        (directory, FileRange::whole(&file))
    }

    fn content(range: &FileRange) -> Result<Vec<u8>, ReadError> {
        let mut input = FileInput::open(range, 0)?;
        let mut content = Vec::new();
        let mut buffer = [0; 100];
        loop {
            let read = input.read(&mut buffer)?;
            if read == 0 {
                input.check_unchanged()?;
                return Ok(content);
            }
            content.extend_from_slice(&buffer[..read]);
        }
    }

    #[test]
    fn all_of_a_plain_file_is_read_and_an_empty_one_is_not_cut() {
        for bytes in [&b""[..], b"one\n"] {
            let (_directory, range) = listed("a", bytes);
            assert_eq!(content(&range).unwrap(), bytes);
        }
    }

    #[test]
    fn all_members_of_a_gzip_file_are_read() {
        let (_directory, range) =
            listed("a.gz", &[gzip(b"one\n"), gzip(b""), gzip(b"two")].concat());
        assert_eq!(content(&range).unwrap(), b"one\ntwo");
    }

    #[test]
    fn p4_a_damaged_or_cut_gzip_file_is_no_shorter_input() {
        let whole = gzip(&(0..10_000).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        let cut =
            [1, 9, 20, whole.len() / 2, whole.len() - 1].map(|length| whole[..length].to_vec());
        let garbage = [whole.as_slice(), b"garbage"].concat();
        for bytes in cut.into_iter().chain([flipped, garbage, b"plain text".to_vec()]) {
            let (_directory, range) = listed("a.GZ", &bytes);
            let error = content(&range).unwrap_err();
            assert!(matches!(error, ReadError::BadGzip { .. }), "{error}");
            assert!(error.to_string().contains("a.GZ") && error.to_string().contains("gzip -t"));
        }
    }

    #[test]
    fn p4_a_file_that_changed_after_it_was_listed_is_refused() {
        for name in ["a", "a.gz"] {
            let (_directory, range) = listed(name, &gzip(b"one\n"));
            fs::write(&range.path, gzip(b"one\ntwo\n")).unwrap();
            let error = content(&range).unwrap_err();
            assert!(matches!(error, ReadError::Changed { .. }), "{error}");
        }
    }

    #[test]
    fn p4_a_file_of_the_same_length_that_was_modified_is_refused() {
        let (_directory, range) = listed("a", b"one\n");
        let file = File::options().append(true).open(&range.path).unwrap();
        let later =
            file.metadata().unwrap().modified().unwrap() + std::time::Duration::from_nanos(1);
        file.set_modified(later).unwrap();
        let error = content(&range).unwrap_err();
        assert!(matches!(error, ReadError::Changed { .. }), "{error}");
    }

    #[test]
    fn p4_a_file_that_changes_while_it_is_read_is_refused() {
        let (_directory, range) = listed("a", b"one\ntwo\n");
        let mut input = FileInput::open(&range, 0).unwrap();
        assert_eq!(input.read(&mut [0; 4]).unwrap(), 4);
        File::options().write(true).open(&range.path).unwrap().set_len(5).unwrap();
        assert_eq!(input.read(&mut [0; 4]).unwrap(), 1);
        let error = input.read(&mut [0; 4]).unwrap_err();
        assert!(matches!(error, ReadError::Changed { .. }), "{error}");
        let unstamped = FileRange { stamp: None, ..range };
        let error = content(&unstamped).unwrap_err();
        assert!(matches!(error, ReadError::Shrunk { end: 8, .. }), "{error}");
    }

    #[test]
    fn p4_a_file_that_is_gone_since_it_was_listed_is_named() {
        let (directory, range) = listed("a", b"one\n");
        drop(directory);
        let error = content(&range).unwrap_err();
        assert!(matches!(error, ReadError::Gone { .. }), "{error}");
    }
}
