//! Places with weights, thinned to as many as there is room for.

use super::sampler::Sample;

/// Samples in memory at least before they are thinned.
const SAMPLES_MIN: usize = 64;

/// Samples with weights, of which neighbours are put together when there are too many.
#[derive(Debug)]
pub(super) struct Quantiles {
    samples: Vec<Sample>,
    bytes: u64,
    bytes_max: u64,
}

impl Quantiles {
    /// Takes about `bytes_max` of memory.
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { samples: Vec::new(), bytes: 0, bytes_max }
    }

    /// Adds a sample.
    pub(super) fn add(&mut self, sample: Sample) {
        self.bytes += sample.place.bytes();
        self.samples.push(sample);
        if self.bytes > self.bytes_max && self.samples.len() > SAMPLES_MIN {
            self.thin(self.samples.len() / 2);
        }
    }

    /// At most `max` samples, ascending, each with the weight of those that it stands for; none
    /// stands at the same place as another.
    pub(super) fn into_samples(mut self, max: usize) -> Vec<Sample> {
        self.thin(max);
        self.samples
    }

    /// Puts neighbours together, so that at most `max` are left, of about the same weight, but for
    /// those that weigh more by themselves.
    fn thin(&mut self, max: usize) {
        self.samples.sort_unstable_by(|a, b| a.place.cmp(&b.place));
        self.samples.dedup_by(|next, kept| {
            let same = next.place == kept.place;
            if same {
                kept.weight = kept.weight.saturating_add(next.weight);
            }
            same
        });
        let total = self.total();
        let step = total / max.max(1) as u64 + 1;
        let (mut sum, mut taken) = (0_u64, 0_u64);
        self.samples.retain_mut(|sample| {
            let before = sum / step;
            sum = sum.saturating_add(sample.weight);
            if sum / step == before && sum < total {
                return false;
            }
            sample.weight = sum - taken;
            taken = sum;
            true
        });
        self.bytes = self.samples.iter().map(|sample| sample.place.bytes()).sum();
    }

    fn total(&self) -> u64 {
        self.samples.iter().fold(0, |sum, sample| sum.saturating_add(sample.weight))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sort::sampler::Place;

    fn sample(number: u32, weight: u64) -> Sample {
        Sample { place: Place::new(&number.to_be_bytes(), b""), weight }
    }

    fn number(sample: &Sample) -> u32 {
        u32::from_be_bytes(*sample.place.key.first_chunk().unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn thinned_samples_ascend_and_keep_the_weight(
            samples: Vec<(u8, u16)>,
            bytes_max in 0_u64..4000,
            max in 1_usize..100,
        ) {
            let mut quantiles = Quantiles::new(bytes_max);
            for (number, weight) in &samples {
                quantiles.add(sample(u32::from(*number), u64::from(*weight) + 1));
            }
            let found = quantiles.into_samples(max);
            prop_assert!(found.len() <= max);
            prop_assert!(found.is_sorted_by(|a, b| a.place < b.place));
            let weight: u64 = samples.iter().map(|(_, weight)| u64::from(*weight) + 1).sum();
            prop_assert_eq!(found.iter().map(|sample| sample.weight).sum::<u64>(), weight);
        }
    }

    #[test]
    fn many_samples_in_little_memory_still_tell_where_the_middle_is() {
        let mut quantiles = Quantiles::new(100_000);
        for number in 0..100_000_u32 {
            quantiles.add(sample(number.wrapping_mul(2_654_435_769) >> 8, 1));
        }
        let found = quantiles.into_samples(2);
        assert_eq!(found.len(), 2);
        let middle = number(&found[0]);
        assert!(middle.abs_diff(1 << 23) < 1 << 19, "{middle}");
    }
}
