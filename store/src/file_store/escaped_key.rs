//! Keys of documents as file names.

use std::fmt::Write;

/// A name without `.` and `/`, different for each key.
pub(super) fn escape(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            name.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _written = write!(name, "%{byte:02x}");
        }
    }
    name
}

/// The key of a name that [`escape`] made.
pub(super) fn unescape(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    let key = String::from_utf8(bytes).ok()?;
    (escape(&key) == name).then_some(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_key_comes_back(key in "\\PC{1,20}") {
            prop_assert_eq!(unescape(&escape(&key)), Some(key));
        }
    }

    #[test]
    fn names_that_no_key_has_are_none() {
        for name in ["a.new", "%", "%4", "%zz", "%41", "..", "%ff"] {
            assert_eq!(unescape(name), None, "{name}");
        }
    }
}
