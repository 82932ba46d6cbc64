//! Where a `flat_map_text` puts its texts.

use std::ops::Range;

use regrow_actors::task::TaskContext;
use regrow_protocol::{Accumulator as Value, TaskFailure};

use crate::accumulators::{Accumulator, Tally};

/// Collects the texts that a `flat_map_text` makes of one record or several, in one buffer: without an
/// allocation per text. And what it counts.
#[derive(Default)]
pub struct TextEmitter {
    text: String,
    records: Vec<Range<usize>>,
    tally: Tally,
}

/// Byte classes of ASCII text: white space as Unicode has it.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

impl TextEmitter {
    /// Emits a record.
    #[inline]
    pub fn emit(&mut self, record: impl AsRef<str>) {
        let start = self.text.len();
        self.text.push_str(record.as_ref());
        self.records.push(start..self.text.len());
    }

    /// Emits each word of `line` in lower case: what stands between Unicode white space.
    pub fn emit_lowercase_words(&mut self, line: &str) {
        if !line.is_ascii() {
            for word in line.split_whitespace() {
                self.emit(word.to_lowercase());
            }
            return;
        }
        // The line is copied whole and its words are ranges of the copy: cheaper than word by word.
        let offset = self.text.len();
        self.text.push_str(line);
        self.text[offset..].make_ascii_lowercase();
        let bytes = line.as_bytes();
        let mut position = 0;
        while position < bytes.len() {
            let word = &bytes[position..];
            let length = word.iter().position(|&byte| is_space(byte)).unwrap_or(word.len());
            if length > 0 {
                self.records.push(offset + position..offset + position + length);
            }
            position += length + 1;
        }
    }

    /// Adds `value` to the sum `name` of the job; the sum saturates.
    #[inline]
    pub fn add(&mut self, name: &str, value: i64) {
        self.tally.count(name, Value::Sum(value));
    }

    /// Notes `value` as a candidate for the greatest value of `name` in the job.
    #[inline]
    pub fn max(&mut self, name: &str, value: i64) {
        self.tally.count(name, Value::Max(value));
    }

    /// Notes `value` as a candidate for the least value of `name` in the job.
    #[inline]
    pub fn min(&mut self, name: &str, value: i64) {
        self.tally.count(name, Value::Min(value));
    }

    /// The value `name` of this task, of a type of the program's own. The values of all tasks are
    /// merged when the program reads the result; all accumulators of a task may take
    /// [`ACCUMULATOR_BYTES_MAX`](crate::ACCUMULATOR_BYTES_MAX) bytes.
    pub fn accumulator<T: Accumulator>(&mut self, name: &str) -> &mut T {
        self.tally.accumulator(name)
    }

    /// Whether the attempt cannot finish, because of what is counted.
    #[inline]
    pub(crate) fn is_too_large(&self) -> bool {
        self.tally.is_too_large()
    }

    /// Gives the attempt what was counted.
    pub(crate) fn hand_over(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.tally.hand_over(context)
    }

    /// Bytes that are collected.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Gives all records away, in order, and forgets them; stops at the first error.
    pub(crate) fn drain<E>(
        &mut self,
        mut take: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        for range in self.records.drain(..) {
            take(&self.text[range])?;
        }
        self.text.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drained(emitter: &mut TextEmitter) -> Vec<String> {
        let mut records = Vec::new();
        let taken: Result<(), ()> = emitter.drain(|record| {
            records.push(record.to_owned());
            Ok(())
        });
        assert_eq!(taken, Ok(()));
        records
    }

    #[test]
    fn records_come_out_as_they_were_emitted() {
        let mut emitter = TextEmitter::default();
        emitter.emit("a");
        emitter.emit(String::new());
        emitter.emit("b c");
        assert_eq!(drained(&mut emitter), ["a", "", "b c"]);
        assert_eq!(drained(&mut emitter), [""; 0]);
    }

    proptest! {
        #[test]
        fn words_are_those_of_the_standard_library(
            lines in proptest::collection::vec("[ -~\t\u{b}\u{c}\r\u{1c}\u{1f}\u{85}\u{a0}ÄΣσ\u{2003}]{0,40}|[ -~\t\u{b}]{0,40}", 0..5),
        ) {
            let mut emitter = TextEmitter::default();
            let mut expected = Vec::new();
            for line in &lines {
                emitter.emit_lowercase_words(line);
                expected.extend(line.split_whitespace().map(str::to_lowercase));
            }
            prop_assert_eq!(drained(&mut emitter), expected);
        }
    }
}
