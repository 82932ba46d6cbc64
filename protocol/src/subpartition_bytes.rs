//! How many bytes a partition has in each subpartition.

use serde::{Deserialize, Serialize};

use crate::varint::{read_varint, write_varint};

/// Bytes per subpartition of one partition, sparse: pairs of (index, bytes) where bytes > 0.
///
/// Packed as varints (LEB128): the gap to the previous index, then the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubpartitionBytes {
    #[serde(with = "serde_bytes")]
    packed: Vec<u8>,
}

impl SubpartitionBytes {
    /// Packs `bytes`, one number per subpartition.
    pub fn new(bytes: &[u64]) -> Self {
        let mut packed = Vec::new();
        let mut previous = 0;
        for (index, &count) in (0_u64..).zip(bytes) {
            if count > 0 {
                write_varint(&mut packed, index - previous);
                write_varint(&mut packed, count);
                previous = index;
            }
        }
        Self { packed }
    }

    /// (subpartition, bytes) of those that have any, ascending. Stops at the first malformed or
    /// out-of-range entry, which only a damaged record can hold.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let mut rest = self.packed.as_slice();
        let mut index = 0_u64;
        std::iter::from_fn(move || {
            let gap = read_varint(&mut rest)?;
            let count = read_varint(&mut rest)?;
            index = index.checked_add(gap)?;
            Some((u32::try_from(index).ok()?, count))
        })
    }

    /// How many bytes it takes itself.
    pub fn room(&self) -> u64 {
        self.packed.len() as u64
    }

    /// The pairs as they are packed; [`from_packed`](Self::from_packed) takes them back.
    pub fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// Takes pairs that are packed already. Bytes that are none end the pairs where they are read.
    pub fn from_packed(packed: Vec<u8>) -> Self {
        Self { packed }
    }

    /// Bytes of all subpartitions together.
    pub fn total(&self) -> u64 {
        self.iter().fold(0, |total, (_, count)| total.saturating_add(count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packing_keeps_all_that_is_not_zero(
            bytes in proptest::collection::vec(prop_oneof![Just(0_u64), any::<u64>()], 0..64),
        ) {
            let expected: Vec<(u32, u64)> =
                (0..).zip(bytes.iter().copied()).filter(|(_, count)| *count > 0).collect();
            let found: Vec<(u32, u64)> = SubpartitionBytes::new(&bytes).iter().collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn any_packed_bytes_end(packed in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = SubpartitionBytes { packed }.total();
        }
    }
}
