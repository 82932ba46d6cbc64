//! The name of a job as users know it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use thiserror::Error;

/// Names a job: 32 hex digits as Flink's, or 1 to 64 of `A-Z a-z 0-9 _ -` chosen by the user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct JobId(String);

/// The text is no job id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("job id {found:?} is not valid: use 1 to {max} of the characters A-Z a-z 0-9 _ -", max = JobId::LENGTH_MAX)]
pub struct JobIdError {
    found: String,
}

impl JobId {
    /// Most characters that a job id may have.
    pub const LENGTH_MAX: usize = 64;

    /// Makes a job id as Flink would, from 128 random bits.
    pub fn from_bits(bits: u128) -> Self {
        Self(format!("{bits:032x}"))
    }

    /// The id as text; safe as a file name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for JobId {
    type Err = JobIdError;

    fn from_str(text: &str) -> Result<Self, JobIdError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let valid = (1..=Self::LENGTH_MAX).contains(&text.len()) && text.bytes().all(allowed);
        if !valid {
            return Err(JobIdError { found: text.chars().take(2 * Self::LENGTH_MAX).collect() });
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_names_are_ids() {
        assert!("nightly_2026-11".parse::<JobId>().is_ok());
        let long = "x".repeat(65);
        for text in ["", "a/b", "..", "a b", "ä", long.as_str()] {
            assert!(text.parse::<JobId>().is_err(), "{text}");
        }
    }
}
