//! How much memory a value takes, at a guess from what it writes.

use serde::Serialize;

/// What a number, a text or a sequence is taken to need beside what it writes: most of a word that
/// the encoding has left out, or of the header of a `Vec` or `String`.
const PART_BYTES: usize = 12;

/// What a byte alone is taken to need: it stands for a flag, a variant or a missing value, which
/// are padded.
const FLAG_BYTES: usize = 8;

/// Bytes that `value` takes beside itself: about what it is, rather more than less. 0 for what
/// cannot be written; whoever writes it will say so.
pub(crate) fn footprint<T: Serialize>(value: &T) -> usize {
    postcard::serialize_with_flavor(value, Parts(0)).unwrap_or(0)
}

/// Weighs what postcard writes: numbers, lengths and texts come in one call each.
struct Parts(usize);

impl postcard::ser_flavors::Flavor for Parts {
    type Output = usize;

    #[inline]
    fn try_push(&mut self, _: u8) -> postcard::Result<()> {
        self.0 += FLAG_BYTES;
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0 += PART_BYTES + bytes.len();
        Ok(())
    }

    fn finalize(self) -> postcard::Result<usize> {
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_value_is_weighed_about_as_it_is() {
        let numbers: Vec<u64> = (0..1_000).collect();
        assert!((8_000..24_000).contains(&footprint(&numbers)));
        let texts = vec!["twenty characters...".to_owned(); 1_000];
        assert!((44_000..66_000).contains(&footprint(&texts)));
        assert!((16_000..40_000).contains(&footprint(&vec![Some(1_u64); 1_000])));
    }
}
