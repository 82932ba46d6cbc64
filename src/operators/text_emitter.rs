//! Where a `flat_map_text` puts its texts.

use std::ops::Range;

use regrow_actors::task::TaskContext;
use regrow_protocol::{Accumulator as Value, TaskFailure};

use crate::{
    accumulators::{Accumulator, Tally},
    chain::Consume,
};

/// Bytes that are collected before they go on: large enough that passing them on costs little,
/// small enough that they stay in the nearest cache.
const BATCH_BYTES: usize = 16 << 10;

/// Texts that are collected before they go on, however short they are.
const BATCH_RECORDS: usize = 4096;

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

    /// Whether there is enough to be passed on.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.text.len() >= BATCH_BYTES
            || self.records.len() >= BATCH_RECORDS
            || self.tally.is_too_large()
    }

    /// Gives all records to `end`, in order, and forgets them.
    pub(crate) fn pass_on<E: Consume<str>>(
        &mut self,
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        self.tally.check()?;
        for range in self.records.drain(..) {
            end.consume(&self.text[range], context)?;
        }
        self.text.clear();
        Ok(())
    }

    /// Gives `end` the last records and the attempt what was counted.
    pub(crate) fn finish<E: Consume<str>>(
        &mut self,
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        self.pass_on(end, context)?;
        self.tally.hand_over(context)?;
        end.finish(context)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_context::TestContext;

    struct Texts(Vec<String>);

    impl Consume<str> for Texts {
        fn consume(&mut self, text: &str, _: &mut dyn TaskContext) -> Result<(), TaskFailure> {
            self.0.push(text.to_owned());
            Ok(())
        }

        fn finish(&mut self, _: &mut dyn TaskContext) -> Result<(), TaskFailure> {
            Ok(())
        }
    }

    fn passed_on(emitter: &mut TextEmitter) -> Vec<String> {
        let mut texts = Texts(Vec::new());
        emitter.pass_on(&mut texts, &mut TestContext::new(0)).unwrap();
        texts.0
    }

    #[test]
    fn texts_without_a_byte_are_passed_on_before_they_fill_the_memory() {
        let mut emitter = TextEmitter::default();
        for _ in 0..BATCH_RECORDS {
            assert!(!emitter.is_full());
            emitter.emit("");
        }
        assert!(emitter.is_full());
        assert_eq!(passed_on(&mut emitter).len(), BATCH_RECORDS);
        assert!(!emitter.is_full());
    }

    #[test]
    fn records_come_out_as_they_were_emitted() {
        let mut emitter = TextEmitter::default();
        emitter.emit("a");
        emitter.emit(String::new());
        emitter.emit("b c");
        assert_eq!(passed_on(&mut emitter), ["a", "", "b c"]);
        assert_eq!(passed_on(&mut emitter), [""; 0]);
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
            prop_assert_eq!(passed_on(&mut emitter), expected);
        }
    }
}
