//! `SplitMix64` (Steele, Lea and Flood, 2014): numbers that look random, and are the same everywhere.

/// What each step adds to the state.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number at a state.
#[inline]
pub(crate) fn mix(state: u64) -> u64 {
    let value = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_reference() {
        let numbers =
            (1..4).map(|step: u64| mix(1_234_567_u64.wrapping_add(step.wrapping_mul(STEP))));
        let expected =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(numbers.collect::<Vec<_>>(), expected);
    }
}
