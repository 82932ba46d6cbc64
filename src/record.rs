//! Records, as operators pass them on and as blocks hold them.

use std::borrow::Borrow;

use regrow_protocol::TaskFailure;
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

/// A type of records: anything that serde can write and read, and text and bytes without an owner
/// (`str`, `[u8]`), which operators hand on without a copy.
///
/// In a block records follow each other without gaps, in the form of postcard: a number is LEB128
/// (signed ones zigzag), a text its length and its bytes, a struct its fields. So blocks say nothing of
/// types: who reads them runs the same program.
pub trait Record: Send + 'static {
    /// A record of its own, for when it must outlive what it was read from. In a block it looks
    /// the same.
    type Owned: Borrow<Self> + Serialize + DeserializeOwned + Send + 'static;

    /// Appends the record to a block.
    ///
    /// # Errors
    /// When its `Serialize` refuses it.
    fn write(&self, block: &mut Vec<u8>) -> Result<(), RecordError>;

    /// Takes a record off the front of a block; it may come to stand in `slot`.
    ///
    /// # Errors
    /// When there is none: the block is damaged, or was written as another type.
    fn read<'s, 'b: 's>(
        block: &mut &'b [u8],
        slot: &'s mut Option<Self::Owned>,
    ) -> Result<&'s Self, RecordError>;
}

/// A record cannot be written to a block or read from one: its `Serialize` and `Deserialize` do
/// not fit together, or it uses what a block cannot hold, like a sequence of unknown length.
#[derive(Debug, Error)]
#[error("a record of type {record_type} cannot be {action}: {cause}")]
pub struct RecordError {
    action: &'static str,
    record_type: &'static str,
    cause: String,
}

impl RecordError {
    fn new<R: ?Sized>(action: &'static str, cause: impl ToString) -> Self {
        Self { action, record_type: std::any::type_name::<R>(), cause: cause.to_string() }
    }
}

impl From<RecordError> for TaskFailure {
    fn from(error: RecordError) -> Self {
        Self::unrecoverable(error.to_string())
    }
}

impl<T: Serialize + DeserializeOwned + Send + 'static> Record for T {
    type Owned = T;

    #[inline]
    fn write(&self, block: &mut Vec<u8>) -> Result<(), RecordError> {
        let start = block.len();
        postcard::serialize_with_flavor(self, Block(block))
            .map_err(|error| RecordError::new::<T>("written", error))?;
        if block.len() == start {
            // A block of nothing would not say how many records it holds.
            return Err(RecordError::new::<T>("written", "it has no content"));
        }
        Ok(())
    }

    #[inline]
    fn read<'s, 'b: 's>(
        block: &mut &'b [u8],
        slot: &'s mut Option<T>,
    ) -> Result<&'s T, RecordError> {
        let (record, rest) = postcard::take_from_bytes(block)
            .map_err(|error| RecordError::new::<T>("read", error))?;
        *block = rest;
        Ok(slot.insert(record))
    }
}

impl Record for str {
    type Owned = String;

    #[inline]
    fn write(&self, block: &mut Vec<u8>) -> Result<(), RecordError> {
        write_bytes(self.as_bytes(), block);
        Ok(())
    }

    #[inline]
    fn read<'s, 'b: 's>(
        block: &mut &'b [u8],
        _slot: &'s mut Option<String>,
    ) -> Result<&'s str, RecordError> {
        let bytes = read_bytes(block).ok_or_else(|| RecordError::new::<str>("read", CUT_OFF))?;
        std::str::from_utf8(bytes).map_err(|error| RecordError::new::<str>("read", error))
    }
}

impl Record for [u8] {
    type Owned = Vec<u8>;

    #[inline]
    fn write(&self, block: &mut Vec<u8>) -> Result<(), RecordError> {
        write_bytes(self, block);
        Ok(())
    }

    #[inline]
    fn read<'s, 'b: 's>(
        block: &mut &'b [u8],
        _slot: &'s mut Option<Vec<u8>>,
    ) -> Result<&'s [u8], RecordError> {
        read_bytes(block).ok_or_else(|| RecordError::new::<[u8]>("read", CUT_OFF))
    }
}

const CUT_OFF: &str = "the block is cut off in its middle";

/// The end of a block, for postcard to append to.
struct Block<'a>(&'a mut Vec<u8>);

impl postcard::ser_flavors::Flavor for Block<'_> {
    type Output = ();

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// Appends a text or key.
pub(crate) fn write_bytes(bytes: &[u8], block: &mut Vec<u8>) {
    write_number(bytes.len() as u64, block);
    block.extend_from_slice(bytes);
}

/// Appends a number.
pub(crate) fn write_number(mut value: u64, block: &mut Vec<u8>) {
    while value >= 0x80 {
        let [low, ..] = value.to_le_bytes();
        block.push(low | 0x80);
        value >>= 7;
    }
    let [low, ..] = value.to_le_bytes();
    block.push(low);
}

/// Takes a text or key off the front of a block; none if the block is malformed.
pub(crate) fn read_bytes<'a>(block: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(read_number(block)?).ok()?;
    let (bytes, rest) = block.split_at_checked(length)?;
    *block = rest;
    Some(bytes)
}

/// Takes a number off the front of a block; none if the block is malformed.
pub(crate) fn read_number(block: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = block.split_first()?;
        *block = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Point,
        Circle { radius: f64 },
        Named(String, Option<i64>),
    }

    fn there_and_back<R: Record + ?Sized>(records: &[&R], check: impl Fn(&R, &R)) {
        let mut block = Vec::new();
        for record in records {
            record.write(&mut block).unwrap();
        }
        let mut rest = block.as_slice();
        for record in records {
            let mut slot = None;
            check(R::read(&mut rest, &mut slot).unwrap(), record);
        }
        assert!(rest.is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_block_gives_back_what_was_written(
            records: Vec<(String, u64, Option<i32>, Vec<(bool, char)>)>,
        ) {
            there_and_back(&records.iter().collect::<Vec<_>>(), |a, b| assert_eq!(a, b));
            let texts: Vec<&str> = records.iter().map(|record| record.0.as_str()).collect();
            there_and_back(&texts, |a, b| assert_eq!(a, b));
            let bytes: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
            there_and_back(&bytes, |a, b| assert_eq!(a, b));
        }

        #[test]
        fn any_block_reads_or_is_malformed(block: Vec<u8>) {
            let mut rest = block.as_slice();
            let mut slot = None;
            while !rest.is_empty() && <(String, Shape)>::read(&mut rest, &mut slot).is_ok() {}
            let mut rest = block.as_slice();
            while !rest.is_empty() && <str>::read(&mut rest, &mut None).is_ok() {}
        }
    }

    #[test]
    fn structs_enums_and_maps_are_records() {
        let shapes =
            [Shape::Point, Shape::Circle { radius: 0.5 }, Shape::Named("a".to_owned(), Some(-3))];
        there_and_back(&shapes.iter().collect::<Vec<_>>(), |a, b| assert_eq!(a, b));
        let map = BTreeMap::from([("a".to_owned(), vec![1_u8])]);
        there_and_back(&[&map], |a, b| assert_eq!(a, b));
    }

    #[test]
    fn an_owned_text_is_written_as_a_borrowed_one() {
        let (mut owned, mut borrowed) = (Vec::new(), Vec::new());
        "word".to_owned().write(&mut owned).unwrap();
        "word".write(&mut borrowed).unwrap();
        assert_eq!(owned, borrowed);
    }

    #[test]
    fn a_record_without_content_is_refused() {
        let error = ().write(&mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "a record of type () cannot be written: it has no content");
    }

    #[test]
    fn what_is_no_record_is_named_with_its_type() {
        let error = <(u64, String)>::read(&mut [1, 200].as_slice(), &mut None).unwrap_err();
        assert!(
            error.to_string().contains("(u64, alloc::string::String) cannot be read"),
            "{error}"
        );
    }
}
