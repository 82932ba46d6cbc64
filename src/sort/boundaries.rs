//! Where ranges of records begin.

use std::ops::Range;

use super::{
    sampler::{Place, Sample},
    sort_key::prefix,
};

/// Places that divide all records into ranges: a range begins with the first record that is not
/// less than its place.
#[derive(Debug)]
pub(super) struct Boundaries {
    /// The first bytes of each key, which decide almost always.
    prefixes: Vec<u64>,
    places: Vec<Place>,
}

impl Boundaries {
    /// Cuts what `samples`, which ascend, stand for into `ranges` of about the same weight.
    pub(super) fn new(samples: &[Sample], ranges: u32) -> Self {
        let total: u128 = samples.iter().map(|sample| u128::from(sample.weight)).sum();
        let mut places = Vec::new();
        let mut samples = samples.iter();
        let (mut sum, mut current) = (0, None);
        for boundary in 1..u128::from(ranges) {
            let wanted = total * boundary / u128::from(ranges);
            while sum <= wanted
                && let Some(sample) = samples.next()
            {
                sum += u128::from(sample.weight);
                current = Some(&sample.place);
            }
            places.extend(current.cloned());
        }
        Self { prefixes: places.iter().map(|place| prefix(&place.key)).collect(), places }
    }

    /// The ranges that a record with a key of this form may be in: one, where no place has the
    /// very same key.
    #[inline]
    pub(super) fn by_key(&self, key: &[u8]) -> Range<usize> {
        let wanted = prefix(key);
        let start = self.prefixes.partition_point(|prefix| *prefix < wanted);
        if self.prefixes.get(start).is_none_or(|prefix| *prefix != wanted) {
            return start..start + 1;
        }
        let less = self.places[start..].partition_point(|place| place.key.as_slice() < key);
        let equal = self.places[start + less..].partition_point(|place| place.key == key);
        start + less..start + less + equal + 1
    }

    /// Those of the ranges `found` [by its key](Self::by_key) that a record of these bytes may be
    /// in. They are several where it is just at the place of boundaries: records that are the same
    /// can be told apart by nothing, and go to any.
    pub(super) fn by_record(&self, found: Range<usize>, record: &[u8]) -> Range<usize> {
        let places = &self.places[found.start..found.end - 1];
        let less = places.partition_point(|place| place.tie.as_slice() < record);
        let equal = places[less..].partition_point(|place| place.tie == record);
        found.start + less..found.start + less + equal + 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(key: &[u8], tie: &[u8], weight: u64) -> Sample {
        Sample { place: Place::new(key, tie), weight }
    }

    fn range(boundaries: &Boundaries, key: &[u8], record: &[u8]) -> Range<usize> {
        boundaries.by_record(boundaries.by_key(key), record)
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        // Long enough to differ behind the prefix only.
        prop_oneof![
            proptest::collection::vec(0_u8..2, 0..4),
            proptest::collection::vec(0_u8..2, 8..11),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn greater_records_are_in_no_lesser_range(
            samples in proptest::collection::vec((key(), key(), 1_u64..5), 0..20),
            ranges in 1_u32..10,
            records in proptest::collection::vec((key(), key()), 0..20),
        ) {
            let mut samples: Vec<Sample> = samples
                .iter()
                .map(|(key, tie, weight)| sample(key, tie, *weight))
                .collect();
            samples.sort_by(|a, b| a.place.cmp(&b.place));
            let boundaries = Boundaries::new(&samples, ranges);
            for (key, record) in &records {
                let found = range(&boundaries, key, record);
                prop_assert!(found.start < found.end && found.end <= ranges as usize);
                for other in &records {
                    if (key, record) < (&other.0, &other.1) {
                        prop_assert!(found.end - 1 <= range(&boundaries, &other.0, &other.1).start);
                    }
                }
            }
        }
    }

    #[test]
    fn ranges_are_even() {
        let samples: Vec<Sample> =
            (0..100_u8).map(|number| sample(&[number], b"", 1 + u64::from(number % 2))).collect();
        let boundaries = Boundaries::new(&samples, 4);
        let keys: Vec<u8> = boundaries.places.iter().map(|place| place.key[0]).collect();
        assert_eq!(keys, [25, 50, 75]);
    }

    #[test]
    fn records_of_one_key_are_divided_by_what_else_they_hold() {
        let samples: Vec<Sample> = (0..100_u8).map(|tie| sample(b"key", &[tie], 1)).collect();
        let boundaries = Boundaries::new(&samples, 4);
        assert_eq!(boundaries.by_key(b"kex"), 0..1);
        assert_eq!(boundaries.by_key(b"kez"), 3..4);
        for tie in [0, 30, 60, 90] {
            let found = usize::from(tie / 25);
            assert_eq!(range(&boundaries, b"key", &[tie]), found..found + 1);
        }
    }

    #[test]
    fn records_that_are_the_same_may_go_to_all_ranges() {
        let boundaries = Boundaries::new(&[sample(b"key", b"record", 1)], 4);
        assert_eq!(range(&boundaries, b"key", b"record"), 0..4);
        assert_eq!(range(&boundaries, b"key", b"recorc"), 0..1);
        assert_eq!(range(&boundaries, b"key", b"records"), 3..4);
        assert_eq!(range(&Boundaries::new(&[], 4), b"key", b"record"), 0..1);
    }
}
