//! An option as users see it.

use std::fmt;

/// An option as users see it: a row of the table of all options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigOption {
    /// Its name.
    pub key: &'static str,
    /// Other names that are read too.
    pub aliases: &'static [&'static str],
    /// What holds without a setting.
    pub default: String,
    /// What its values look like.
    pub kind: ValueKind,
    /// What it means.
    pub meaning: &'static str,
    /// Whether Flink has the same key.
    pub flink: bool,
}

/// What the values of an option look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A time with its unit.
    Duration,
    /// A time with its unit, or `unlimited`.
    Retention,
    /// A number of bytes, at least 1.
    Size,
    /// A whole number.
    Count {
        /// The least that is allowed.
        min: u32,
        /// The greatest that is allowed.
        max: u32,
    },
    /// `true` or `false`.
    Flag,
    /// A port, or a range of ports.
    Ports,
    /// An IP address of this host.
    IpAddress,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
}

impl ConfigOption {
    /// Whether `key` is its name or another of its names.
    pub fn is_named(&self, key: &str) -> bool {
        self.key == key || self.aliases.contains(&key)
    }
}

impl ValueKind {
    /// What is allowed, with an example, to go behind "use".
    pub fn allowed(self) -> String {
        match self {
            Self::Duration => {
                "a time with its unit, such as `30 s`, `3 min` or `500 ms`".to_owned()
            }
            Self::Retention => {
                "a time with its unit, such as `30 s` or `5 min`, or `unlimited`".to_owned()
            }
            Self::Size => {
                "a size of at least 1 byte, such as `16 mb` or `64 kb` (in steps of 1024)"
                    .to_owned()
            }
            Self::Count { min, max: u32::MAX } => format!("a whole number, {min} or more"),
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Ports => "a port, or a range such as `6123-6130`".to_owned(),
            Self::IpAddress => "an IP address of this host".to_owned(),
            Self::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("one of {}", words.join(", "))
            }
            Self::Text => "any text".to_owned(),
        }
    }
}

/// The unit, for a table.
impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duration | Self::Retention => f.write_str("duration"),
            Self::Size => f.write_str("size"),
            Self::Count { .. } => f.write_str("number"),
            Self::Flag => f.write_str("true or false"),
            Self::Ports => f.write_str("port or range"),
            Self::IpAddress => f.write_str("IP address"),
            Self::Choice(words) => f.write_str(&words.join(" or ")),
            Self::Text => f.write_str("text"),
        }
    }
}
