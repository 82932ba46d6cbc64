//! Takes a sample of the records of one attempt.

use serde::{Deserialize, Serialize};

use crate::split_mix::{STEP, mix};

/// Samples that an attempt takes at most: with those of all attempts, enough to cut a thousand
/// ranges, and little beside the records.
const SAMPLES_MAX: usize = 8192;

/// Bytes of the form of a key that are kept: what is cut off blurs a boundary, and no more.
const KEY_BYTES_MAX: usize = 256;

/// Bytes of a record that are kept to tell it from others of the same key.
const TIE_BYTES_MAX: usize = 256;

/// A place in the order of records: the form of a key, then the bytes of a record. Either may be
/// cut off.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Place {
    #[serde(with = "serde_bytes")]
    pub(super) key: Vec<u8>,
    #[serde(with = "serde_bytes")]
    pub(super) tie: Vec<u8>,
}

/// A place, and for how many records it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sample {
    pub(super) place: Place,
    pub(super) weight: u64,
}

impl Place {
    /// The place of a record.
    pub(super) fn new(key: &[u8], record: &[u8]) -> Self {
        let tie = if key.len() > KEY_BYTES_MAX { &[] } else { record };
        let cut = |bytes: &[u8], max: usize| bytes[..bytes.len().min(max)].to_vec();
        Self { key: cut(key, KEY_BYTES_MAX), tie: cut(tie, TIE_BYTES_MAX) }
    }

    /// Bytes of memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        (size_of::<Self>() + self.key.len() + self.tie.len()) as u64
    }
}

/// Takes each record with the same chance, which is halved whenever there are too many samples.
/// The same number of records gives the same choice, each time.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    samples: Vec<(u64, Place)>,
    records: u64,
    halvings: u32,
}

impl Sampler {
    /// Looks at the next record; `place` makes its place if it is taken.
    #[inline]
    pub(super) fn offer<E>(&mut self, place: impl FnOnce() -> Result<Place, E>) -> Result<(), E> {
        self.records += 1;
        let lot = mix(self.records.wrapping_mul(STEP));
        if lot.trailing_zeros() >= self.halvings {
            self.take(lot, place()?);
        }
        Ok(())
    }

    fn take(&mut self, lot: u64, place: Place) {
        self.samples.push((lot, place));
        while self.samples.len() > SAMPLES_MAX {
            self.halvings += 1;
            let halvings = self.halvings;
            self.samples.retain(|(lot, _)| lot.trailing_zeros() >= halvings);
        }
    }

    /// What was taken.
    pub(super) fn into_samples(self) -> impl Iterator<Item = Sample> {
        let weight = 1_u64 << self.halvings.min(63);
        self.samples.into_iter().map(move |(_, place)| Sample { place, weight })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn samples(records: u32) -> Vec<Sample> {
        let mut sampler = Sampler::default();
        for record in 0..records {
            sampler.offer(|| Ok::<_, Infallible>(Place::new(&record.to_be_bytes(), b"x"))).unwrap();
        }
        sampler.into_samples().collect()
    }

    #[test]
    fn few_records_are_all_taken() {
        let found = samples(8000);
        assert_eq!(found.len(), 8000);
        assert!(found.iter().all(|sample| sample.weight == 1));
    }

    #[test]
    fn many_records_are_taken_evenly_and_weigh_what_there_were() {
        let found = samples(1_000_000);
        assert!((SAMPLES_MAX / 3..=SAMPLES_MAX).contains(&found.len()), "{}", found.len());
        let weight: u64 = found.iter().map(|sample| sample.weight).sum();
        assert!((900_000..1_100_000).contains(&weight), "{weight}");
        let middle = Place::new(&500_000_u32.to_be_bytes(), b"x");
        let below = found.iter().filter(|sample| sample.place < middle).count();
        assert!(below.abs_diff(found.len() / 2) < found.len() / 10, "{below} of {}", found.len());
        assert_eq!(found, samples(1_000_000));
    }

    #[test]
    fn a_place_of_a_long_key_is_its_beginning() {
        let place = Place::new(&[7; 1000], b"record");
        assert_eq!((place.key.len(), place.tie.len()), (KEY_BYTES_MAX, 0));
        assert_eq!(place, Place::new(&[7; 256], b""));
    }
}
