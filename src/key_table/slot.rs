//! One key of a table.

use xxhash_rust::xxh3::xxh3_64;

/// Longest key that lies in its slot.
const INLINE_BYTES_MAX: usize = 15;

/// In place of the length of a key that lies elsewhere.
const LONG: u8 = 0xff;

/// A key that is looked for, with its hash.
#[derive(Clone, Copy)]
pub(crate) struct Key<'a> {
    bytes: &'a [u8],
    packed: PackedKey,
    hash: u64,
}

/// A key in 16 bytes. Up to 15 bytes: the key, zeros, its length. Longer: offset (8 bytes) and
/// length (7 bytes) of the key among the long ones, 0xff.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PackedKey(u128);

/// A key and what stands under it.
pub(super) struct Slot<V> {
    pub(super) value: V,
    pub(super) hash: u64,
    key: [u8; 16],
}

impl<'a> Key<'a> {
    /// Packs and hashes a key.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let packed = PackedKey::new(bytes);
        Self { bytes, packed, hash: packed.hash(bytes) }
    }

    /// The key itself.
    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its hash, the same in every process.
    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether it does not lie in its slot.
    pub(super) fn is_long(&self) -> bool {
        self.packed.is_long()
    }
}

impl PackedKey {
    /// Packs a short key; all long ones look alike.
    #[inline]
    fn new(key: &[u8]) -> Self {
        let length = key.len();
        let bytes = match length {
            0 => 0,
            1..=3 => {
                u128::from(key[0])
                    | u128::from(key[length / 2]) << (8 * (length / 2))
                    | u128::from(key[length - 1]) << (8 * (length - 1))
            }
            // Two loads that may overlap: what lies in both is equal.
            4..=7 => four(&key[..4]) | four(&key[length - 4..]) << (8 * (length - 4)),
            8..=INLINE_BYTES_MAX => {
                eight(&key[..8]) | eight(&key[length - 8..]) << (8 * (length - 8))
            }
            _ => return Self(u128::from(LONG) << 120),
        };
        Self(bytes | (length as u128) << 120)
    }

    fn is_long(self) -> bool {
        self.0 >> 120 == u128::from(LONG)
    }

    /// The hash of `key`, whose packed form this is.
    ///
    /// It decides which consumer gets a key, so it is the same in every process: for a long key
    /// XXH3, for a short one the two halves of the packed form, multiplied and folded.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "takes the halves of 128 bits")]
    fn hash(self, key: &[u8]) -> u64 {
        if self.is_long() {
            return xxh3_64(key);
        }
        let low = self.0 as u64 ^ 0x9e37_79b9_7f4a_7c15;
        let high = (self.0 >> 64) as u64 ^ 0xd1b5_4a32_d192_ed03;
        let product = u128::from(low) * u128::from(high);
        let folded = product as u64 ^ (product >> 64) as u64;
        // A second round: short keys differ in few bits, and all bits of a hash are used.
        let product = u128::from(folded) * u128::from(0xa076_1d64_78bd_642f_u64);
        product as u64 ^ (product >> 64) as u64
    }
}

fn four(bytes: &[u8]) -> u128 {
    bytes.first_chunk().map_or(0, |chunk| u128::from(u32::from_le_bytes(*chunk)))
}

fn eight(bytes: &[u8]) -> u128 {
    bytes.first_chunk().map_or(0, |chunk| u128::from(u64::from_le_bytes(*chunk)))
}

impl<V> Slot<V> {
    /// Makes the slot of a key; a long one is about to be put at `offset`.
    pub(super) fn new(key: &Key<'_>, value: V, offset: usize) -> Self {
        let mut bytes = key.packed.0.to_le_bytes();
        if key.packed.is_long() {
            bytes[..8].copy_from_slice(&(offset as u64).to_le_bytes());
            bytes[8..15].copy_from_slice(&(key.bytes.len() as u64).to_le_bytes()[..7]);
        }
        Self { value, hash: key.hash, key: bytes }
    }

    /// Whether this is the slot of a key.
    #[inline]
    pub(super) fn is(&self, key: &Key<'_>, long_keys: &[u8]) -> bool {
        if key.packed.is_long() {
            return self.hash == key.hash
                && self.key[15] == LONG
                && self.key(long_keys) == key.bytes;
        }
        u128::from_le_bytes(self.key) == key.packed.0
    }

    /// The key.
    #[inline]
    pub(super) fn key<'a>(&'a self, long_keys: &'a [u8]) -> &'a [u8] {
        unpacked(&self.key, long_keys)
    }

    /// The key, and what stands under it.
    pub(super) fn entry_mut<'a>(&'a mut self, long_keys: &'a [u8]) -> (&'a [u8], &'a mut V) {
        (unpacked(&self.key, long_keys), &mut self.value)
    }
}

#[inline]
fn unpacked<'a>(key: &'a [u8; 16], long_keys: &'a [u8]) -> &'a [u8] {
    if key[15] != LONG {
        return &key[..usize::from(key[15])];
    }
    let place = u128::from_le_bytes(*key);
    let offset = position(place & u128::from(u64::MAX));
    let length = position((place >> 64) & ((1 << 56) - 1));
    &long_keys[offset..offset + length]
}

/// A position that came from a `usize`.
fn position(value: u128) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(key: &str) -> u64 {
        Key::new(key.as_bytes()).hash()
    }

    #[test]
    fn the_hash_never_changes() {
        let found =
            ["", "a", "the", "word", "consumer", "fifteen letters", "sixteen letters."].map(hash);
        assert_eq!(found, GOLDEN);
    }

    const GOLDEN: [u64; 7] = [
        6_616_734_375_322_343_211,
        2_413_135_560_818_527_433,
        17_420_548_503_342_298_442,
        6_394_320_888_673_782_924,
        16_282_382_465_003_416_962,
        1_031_262_440_087_713_934,
        16_532_436_196_009_145_243,
    ];

    #[test]
    fn hashes_of_like_keys_spread_over_subpartitions() {
        let mut counts = [0_u32; 16];
        for number in 0..16_000 {
            counts[(hash(&format!("k{number}")) >> 16 & 15) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }
}
