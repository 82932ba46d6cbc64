//! A hash that means the same in every process and version.

use xxhash_rust::xxh3::Xxh3Default;

/// Hashes numbers and bytes to 64 bits (XXH3), the same on every machine and for ever.
#[derive(Clone, Default)]
pub struct StableHasher(Xxh3Default);

impl StableHasher {
    /// Starts a hash of a kind; two kinds of the same content differ.
    pub fn new(kind: &str) -> Self {
        let mut hasher = Self::default();
        hasher.bytes(kind.as_bytes());
        hasher
    }

    /// Adds a number.
    pub fn number(&mut self, value: u64) {
        self.0.update(&value.to_le_bytes());
    }

    /// Adds bytes, with their length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    /// The hash of all that was added.
    pub fn finish(&self) -> u64 {
        self.0.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_never_changes() {
        let mut hasher = StableHasher::new("plan");
        hasher.number(7);
        hasher.bytes(b"abc");
        assert_eq!(hasher.finish(), GOLDEN);
    }

    const GOLDEN: u64 = 10_926_528_908_306_222_485;
}
