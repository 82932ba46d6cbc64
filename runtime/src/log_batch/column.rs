//! Numbers and texts one after the other, as one field of a batch.

use regrow_protocol::{read_varint, write_varint};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A column ends before the value that was looked for, or holds one that cannot be.
#[derive(Debug)]
pub(super) struct Garbled;

/// Any number of values per row. Written at the end and read from the front.
#[derive(Debug, Default)]
pub(super) struct Items {
    bytes: Vec<u8>,
    read: usize,
}

/// One number per row; takes no room while all of them are 0, so that one which is added later
/// reads as 0 where it is missing.
#[derive(Debug, Default)]
pub(super) struct Column {
    items: Items,
    /// Leading zeros that are not written yet.
    zeros: u64,
}

impl Items {
    pub(super) fn push(&mut self, value: u64) {
        write_varint(&mut self.bytes, value);
    }

    /// Appends a number that is often near 0, on either side.
    pub(super) fn push_signed(&mut self, value: i64) {
        // Zigzag: the sign becomes the lowest bit.
        self.push(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        self.push(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// The next number.
    pub(super) fn take(&mut self) -> Result<u64, Garbled> {
        let mut rest = self.rest();
        let value = read_varint(&mut rest).ok_or(Garbled)?;
        self.read = self.bytes.len() - rest.len();
        Ok(value)
    }

    pub(super) fn take_u32(&mut self) -> Result<u32, Garbled> {
        u32::try_from(self.take()?).map_err(|_| Garbled)
    }

    pub(super) fn take_signed(&mut self) -> Result<i64, Garbled> {
        let value = self.take()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    pub(super) fn take_bytes(&mut self) -> Result<Vec<u8>, Garbled> {
        let length = usize::try_from(self.take()?).map_err(|_| Garbled)?;
        let bytes = self.rest().get(..length).ok_or(Garbled)?.to_vec();
        self.read += length;
        Ok(bytes)
    }

    pub(super) fn take_text(&mut self) -> Result<String, Garbled> {
        String::from_utf8(self.take_bytes()?).map_err(|_| Garbled)
    }

    /// Whether nothing is left to take.
    pub(super) fn is_empty(&self) -> bool {
        self.read >= self.bytes.len()
    }

    /// Whether it takes no room.
    pub(super) fn is_unwritten(&self) -> bool {
        self.bytes.is_empty()
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.read..).unwrap_or_default()
    }
}

impl Column {
    pub(super) fn push(&mut self, value: u64) {
        if value == 0 && self.is_unwritten() {
            self.zeros += 1;
            return;
        }
        for _ in 0..std::mem::take(&mut self.zeros) {
            self.items.push(0);
        }
        self.items.push(value);
    }

    /// The number of the next row.
    pub(super) fn take(&mut self) -> Result<u64, Garbled> {
        if self.is_unwritten() {
            return Ok(0);
        }
        self.items.take()
    }

    pub(super) fn take_u32(&mut self) -> Result<u32, Garbled> {
        u32::try_from(self.take()?).map_err(|_| Garbled)
    }

    /// Whether it takes no room.
    pub(super) fn is_unwritten(&self) -> bool {
        self.items.is_unwritten()
    }
}

impl Serialize for Items {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.bytes)
    }
}

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = serde_bytes::ByteBuf::deserialize(deserializer)?.into_vec();
        Ok(Self { bytes, read: 0 })
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.items.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Column {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { items: Items::deserialize(deserializer)?, zeros: 0 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn zeros_take_no_room_until_another_number_follows() {
        let mut column = Column::default();
        column.push(0);
        column.push(0);
        assert!(column.items.bytes.is_empty());
        assert_eq!(column.take().unwrap(), 0);
        column.push(5);
        column.push(0);
        assert_eq!(column.items.bytes, [0, 0, 5, 0]);
    }

    #[test]
    fn a_length_beyond_the_end_is_garbled() {
        let mut items = Items { bytes: vec![0xff, 0xff, 0xff, 0x7f, 1, 2], read: 0 };
        assert!(items.take_bytes().is_err());
        assert!(Items::default().take().is_err());
    }

    proptest! {
        #[test]
        fn what_was_pushed_is_taken(
            signed in any::<i64>(), text in ".{0,20}", rows in proptest::collection::vec(0..3_u64, 0..9),
        ) {
            let (mut items, mut column) = (Items::default(), Column::default());
            items.push_signed(signed);
            items.push_bytes(text.as_bytes());
            for row in &rows {
                column.push(*row);
            }
            prop_assert_eq!(items.take_signed().unwrap(), signed);
            prop_assert_eq!(items.take_text().unwrap(), text);
            for row in rows {
                prop_assert_eq!(column.take().unwrap(), row);
            }
            prop_assert!(items.is_empty());
        }
    }
}
