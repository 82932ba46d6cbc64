//! What someone may have meant who mistyped a name.

/// Least likeness (Jaro-Winkler, 0 to 1) of a name that is worth suggesting.
const LIKENESS_MIN: f64 = 0.75;

/// The name among `names` that is most like `wrong`, if any is like it; the first of equals.
pub(crate) fn nearest<'a>(
    wrong: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let mut best = None;
    let mut best_likeness = LIKENESS_MIN;
    for name in names {
        let likeness = strsim::jaro_winkler(wrong, name);
        if likeness > best_likeness {
            best_likeness = likeness;
            best = Some(name);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_a_strange_word_is_not() {
        let jobs = ["stages", "wordcount"];
        assert_eq!(nearest("wordcont", jobs), Some("wordcount"));
        assert_eq!(nearest("stage", jobs), Some("stages"));
        assert_eq!(nearest("xylophone", jobs), None);
    }
}
