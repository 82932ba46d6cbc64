//! Sizes as people write them.

use std::{fmt, str::FromStr};

use regrow_runtime::{format_size, parse_size};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A number of bytes, written as in Flink's options: `10mb`, `64 kb`, `512`; units are powers of
/// 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ByteCount(pub(crate) u64);

/// The text is no size.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("{found:?} is no size: write a whole number and a unit (b, kb, mb, gb, tb), like 10mb")]
pub(crate) struct ByteCountError {
    found: String,
}

impl FromStr for ByteCount {
    type Err = ByteCountError;

    fn from_str(text: &str) -> Result<Self, ByteCountError> {
        parse_size(text).map(Self).ok_or_else(|| ByteCountError { found: text.to_owned() })
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_size(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_flink_reads_them() {
        let read = |text: &str| text.parse::<ByteCount>().map(|count| count.0);
        assert_eq!(read("10mb"), Ok(10 << 20));
        assert_eq!(read(" 64 KB "), Ok(64 << 10));
        assert_eq!(read("512"), Ok(512));
        for wrong in ["", "mb", "-1mb", "1.5gb", "1 xb", "99999999999tb"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(ByteCount(10 << 20).to_string(), "10 mb");
    }
}
