//! Ids of 128 random bits.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use thiserror::Error;

/// The text is not 32 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expected 32 hex digits, found {found:?}")]
pub struct RandomIdError {
    found: String,
}

fn parse(text: &str) -> Result<u128, RandomIdError> {
    let valid = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let error = || RandomIdError { found: text.chars().take(64).collect() };
    if !valid {
        return Err(error());
    }
    u128::from_str_radix(text, 16).map_err(|_| error())
}

// One definition for ids that differ in nothing but their meaning.
macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// Makes the id from 128 random bits.
            pub const fn from_bits(bits: u128) -> Self {
                Self(bits)
            }

            /// The bits of the id.
            pub const fn bits(self) -> u128 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:032x})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = RandomIdError;

            fn from_str(text: &str) -> Result<Self, RandomIdError> {
                parse(text).map(Self)
            }
        }

        /// 32 hex digits for people, 16 big-endian bytes elsewhere.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    return serializer.collect_str(self);
                }
                serde_bytes::Bytes::new(&self.0.to_be_bytes()).serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    let text = String::deserialize(deserializer)?;
                    return text.parse().map_err(D::Error::custom);
                }
                let bytes: serde_bytes::ByteArray<16> = Deserialize::deserialize(deserializer)?;
                Ok(Self(u128::from_be_bytes(bytes.into_array())))
            }
        }
    };
}

random_id! {
    /// One accepted submission of a job: from its acceptance to its one terminal state.
    RunId
}
random_id! {
    /// One call of submit. The same submission, tried again, joins its run.
    SubmissionId
}
random_id! {
    /// One life of a worker process.
    WorkerId
}
random_id! {
    /// One life of what a worker stores: the directory of its partition files.
    DataDirectoryId
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode, encode};

    #[test]
    fn an_id_survives_text_and_bytes() {
        let run = RunId::from_bits(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
        assert_eq!(run.to_string().parse(), Ok(run));
        assert_eq!(decode::<RunId>(&encode(&run).unwrap()).unwrap(), run);
        let json = serde_json::to_string(&run).unwrap();
        assert_eq!(json, "\"0123456789abcdef0011223344556677\"");
        assert_eq!(serde_json::from_str::<RunId>(&json).unwrap(), run);
    }

    #[test]
    fn other_text_is_refused() {
        for text in
            ["", "12", "+123456789abcdef00112233445566770", "zz23456789abcdef0011223344556677"]
        {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
    }
}
