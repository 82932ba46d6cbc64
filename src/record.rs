//! Records, as operators pass them on and as blocks hold them.

/// A type of records.
///
/// In a block a text is its length (LEB128) and its bytes, a number is LEB128, a pair is its first
/// and then its second.
pub trait Record: Send + 'static {
    /// A record as operators see it: borrowed where that saves a copy.
    type Ref<'a>: Copy;

    /// Appends `record` to a block.
    fn write(record: Self::Ref<'_>, block: &mut Vec<u8>);
}

impl Record for String {
    type Ref<'a> = &'a str;

    fn write(record: &str, block: &mut Vec<u8>) {
        write_bytes(record.as_bytes(), block);
    }
}

impl Record for u64 {
    type Ref<'a> = u64;

    fn write(record: u64, block: &mut Vec<u8>) {
        write_number(record, block);
    }
}

impl<A: Record, B: Record> Record for (A, B) {
    type Ref<'a> = (A::Ref<'a>, B::Ref<'a>);

    fn write((first, second): Self::Ref<'_>, block: &mut Vec<u8>) {
        A::write(first, block);
        B::write(second, block);
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_block_gives_back_what_was_written(records: Vec<(String, u64)>) {
            let mut block = Vec::new();
            for (text, number) in &records {
                <(String, u64)>::write((text, *number), &mut block);
            }
            let mut rest = block.as_slice();
            for (text, number) in &records {
                prop_assert_eq!(read_bytes(&mut rest), Some(text.as_bytes()));
                prop_assert_eq!(read_number(&mut rest), Some(*number));
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_block_reads_or_is_malformed(block: Vec<u8>) {
            let mut rest = block.as_slice();
            while !rest.is_empty() && read_bytes(&mut rest).is_some() {}
        }
    }
}
