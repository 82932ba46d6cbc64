//! Records that are made up: the same for the same seed.

use std::io::{self, Write};

use crate::split_mix::{STEP, mix};

/// Bytes of a record.
pub(crate) const RECORD_BYTES: usize = 100;

/// Bytes of its key, with which it begins.
pub(crate) const KEY_BYTES: usize = 10;

/// What keys are made of, ascending.
const LETTERS: &[u8; 64] = b"+/0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Writes the records from number `first` to before `end` of `seed`: a random key of ten letters,
/// the number of the record, something to fill it up, and a line feed.
pub(crate) fn write_records(
    seed: u64,
    first: u64,
    end: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    for number in first..end {
        out.write_all(&record(seed, number))?;
    }
    Ok(())
}

fn record(seed: u64, number: u64) -> [u8; RECORD_BYTES] {
    let mut record = [b' '; RECORD_BYTES];
    let (key, rest) = record.split_at_mut(KEY_BYTES);
    let (digits, filler) = rest.split_at_mut(36);
    let mut random = mix((seed ^ number.wrapping_mul(0xa24b_aed4_963e_e407)).wrapping_add(STEP));
    for byte in key {
        *byte = letter(random);
        random >>= 6;
    }
    let mut left = number;
    for byte in digits[2..34].iter_mut().rev() {
        *byte = DIGITS[(left & 15) as usize];
        left >>= 4;
    }
    for (byte, offset) in filler[..52].iter_mut().zip(0..) {
        *byte = letter(number.wrapping_add(offset));
    }
    record[RECORD_BYTES - 1] = b'\n';
    record
}

fn letter(number: u64) -> u8 {
    LETTERS[(number & 63) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_number_decide_a_record() {
        let mut two = Vec::new();
        write_records(42, 254, 256, &mut two).unwrap();
        assert_eq!(two, [record(42, 254), record(42, 255)].concat());
        assert_ne!(record(42, 255), record(43, 255));
    }

    #[test]
    fn a_record_is_a_line_of_a_key_a_number_and_a_filler() {
        let text = String::from_utf8(record(7, 255).to_vec()).unwrap();
        let parts: Vec<&str> = text.split_ascii_whitespace().collect();
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [KEY_BYTES, 32, 52]);
        assert_eq!(parts[1], format!("{:032X}", 255));
        assert!(text.ends_with('\n') && text.lines().count() == 1);
    }
}
