//! Whole numbers in as few bytes as they need (LEB128).

/// Appends `value`: seven bits a byte, the lowest first, the high bit set on all but the last.
pub fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 && low < 0x80 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Reads a number from the front of `bytes`; none if they end before it does, or if it has more
/// bytes than any number needs.
pub fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_numbers_take_one_byte_and_cut_ones_are_none() {
        for (value, length) in [(0, 1), (127, 1), (128, 2), (u64::MAX, 10)] {
            let mut bytes = Vec::new();
            write_varint(&mut bytes, value);
            assert_eq!(bytes.len(), length);
            assert_eq!(read_varint(&mut bytes.as_slice()), Some(value));
            assert_eq!(read_varint(&mut &bytes[..length - 1]), None);
        }
        assert_eq!(read_varint(&mut [0xff; 11].as_slice()), None);
    }

    proptest! {
        #[test]
        fn numbers_come_back_in_order(values in proptest::collection::vec(any::<u64>(), 0..20)) {
            let mut bytes = Vec::new();
            for value in &values {
                write_varint(&mut bytes, *value);
            }
            let mut rest = bytes.as_slice();
            let found: Vec<u64> = std::iter::from_fn(|| read_varint(&mut rest)).collect();
            prop_assert_eq!(found, values);
        }
    }
}
