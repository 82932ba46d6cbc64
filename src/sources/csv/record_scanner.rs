//! Finds where records of CSV end, without taking them apart.

use memchr::memchr;

use super::csv_format::{CsvFormat, Quotes};

/// What may stand before the first record of a file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Follows the quotes of a file from a record's beginning on, as the `csv` crate takes them: one
/// opens a field only at its beginning, and two within it are one that does not close it.
#[derive(Clone, Debug)]
pub(super) struct RecordScanner {
    delimiter: u8,
    quotes: Quotes,
    state: State,
    /// The last byte that was seen; a line feed before the first.
    previous: u8,
    /// Offset of the next byte.
    position: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unquoted,
    /// Since the quote at this offset.
    Quoted(u64),
    /// Behind a quote in a field that began with the one at this offset: it closes the field,
    /// unless another follows.
    Closing(u64),
}

impl RecordScanner {
    /// Starts at a record that begins at `position`.
    pub(super) fn new(format: &CsvFormat, position: u64) -> Self {
        Self {
            delimiter: format.delimiter_byte(),
            quotes: format.quotes,
            state: State::Unquoted,
            previous: b'\n',
            position,
        }
    }

    /// Offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Where the quoted field began that goes on at the next byte, if one does.
    pub(super) fn open_quote(&self) -> Option<u64> {
        match self.state {
            State::Quoted(start) => Some(start),
            State::Unquoted | State::Closing(_) => None,
        }
    }

    /// Goes on over `bytes`.
    pub(super) fn advance(&mut self, bytes: &[u8]) {
        if self.quotes == Quotes::Enclose {
            let mut index = self.skip_mark(bytes);
            while index < bytes.len() {
                index = self.step(bytes, index);
            }
        }
        if let Some(&last) = bytes.last() {
            self.previous = last;
        }
        self.position += bytes.len() as u64;
    }

    /// Goes on to the end of the first record that ends in `bytes`, and says how far that is; over
    /// all of them if none does.
    pub(super) fn advance_to_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut start = 0;
        while let Some(feed) = memchr(b'\n', &bytes[start..]) {
            self.advance(&bytes[start..=start + feed]);
            start += feed + 1;
            if self.open_quote().is_none() {
                return Some(start);
            }
        }
        self.advance(&bytes[start..]);
        None
    }

    /// Deals with what comes at `index`, up to the next quote; gives the index behind it.
    fn step(&mut self, bytes: &[u8], index: usize) -> usize {
        if let State::Closing(start) = self.state {
            let doubled = bytes[index] == b'"';
            self.state = if doubled { State::Quoted(start) } else { State::Unquoted };
            return if doubled { index + 1 } else { index };
        }
        let Some(found) = memchr(b'"', &bytes[index..]) else { return bytes.len() };
        let quote = index + found;
        self.state = match self.state {
            State::Quoted(start) | State::Closing(start) => State::Closing(start),
            State::Unquoted if self.begins_field(bytes, quote) => {
                State::Quoted(self.position + quote as u64)
            }
            State::Unquoted => State::Unquoted,
        };
        quote + 1
    }

    fn begins_field(&self, bytes: &[u8], index: usize) -> bool {
        if self.position == 0
            && index == BYTE_ORDER_MARK.len()
            && bytes.starts_with(BYTE_ORDER_MARK)
        {
            return true;
        }
        let before = index.checked_sub(1).map_or(self.previous, |before| bytes[before]);
        before == self.delimiter || before == b'\n' || before == b'\r'
    }

    fn skip_mark(&self, bytes: &[u8]) -> usize {
        if self.position == 0 && bytes.starts_with(BYTE_ORDER_MARK) {
            return BYTE_ORDER_MARK.len();
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Offsets at which records end that a line feed ends, as the scanner sees them in pieces.
    fn ends(text: &[u8], piece: usize) -> Vec<u64> {
        let mut scanner = RecordScanner::new(&CsvFormat::default(), 0);
        let mut ends = Vec::new();
        for mut bytes in text.chunks(piece) {
            while let Some(length) = scanner.advance_to_end(bytes) {
                ends.push(scanner.position());
                bytes = &bytes[length..];
            }
        }
        ends
    }

    /// How many records `csv` finds, and whether they are the same as those of the parts of `text`
    /// between the ends that the scanner found.
    fn records(text: &[u8]) -> Vec<csv::ByteRecord> {
        let mut builder = csv::ReaderBuilder::new();
        let reader = builder.has_headers(false).flexible(true).from_reader(text);
        reader.into_byte_records().map(Result::unwrap).collect()
    }

    proptest! {
        #[test]
        fn pieces_between_ends_hold_the_same_records(
            text in "([a,\"\r\n]|\"\"|\",\"|,\"|\"\n|x \"){0,60}",
            piece in 1_usize..20,
        ) {
            let text = text.as_bytes();
            let found = ends(text, piece);
            prop_assert_eq!(&found, &ends(text, text.len().max(1)));
            let mut pieces = Vec::new();
            let mut start = 0;
            for end in found.into_iter().chain([text.len() as u64]) {
                let end = usize::try_from(end).unwrap();
                pieces.extend(records(&text[start..end]));
                start = end;
            }
            prop_assert_eq!(pieces, records(text));
        }
    }

    #[test]
    fn a_line_feed_ends_a_record_only_outside_of_quotes() {
        assert_eq!(ends(b"a,\"b\nc\"\nd\n", 4), [8, 10]);
        assert_eq!(ends(b"5\" pipe\n6\" pipe\n", 99), [8, 16]);
        assert_eq!(ends(b"\"a\"\"\nb\"\n", 1), [8]);
        assert_eq!(ends("\u{feff}\"a\nb\"\n".as_bytes(), 99), [9]);
    }

    #[test]
    fn a_quote_that_stays_open_is_known_by_its_place() {
        let mut scanner = RecordScanner::new(&CsvFormat::default(), 100);
        scanner.advance(b"a,\"b\n");
        assert_eq!(scanner.open_quote(), Some(102));
        scanner.advance(b"\"");
        assert_eq!(scanner.open_quote(), None);
        let mut scanner = RecordScanner::new(&CsvFormat::default().without_quotes(), 0);
        assert_eq!(scanner.advance_to_end(b"a,\"b\nc"), Some(5));
    }
}
