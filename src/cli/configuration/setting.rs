//! A setting, and where it came from.

use std::{fmt, path::PathBuf};

/// A setting as somebody made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Of which option; perhaps another of its names, or none.
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) origin: Origin,
}

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file of settings.
    File {
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// A variable of the environment.
    Environment {
        /// Its name.
        variable: String,
    },
    /// `-D key=value`.
    CommandLine,
    /// A flag that says the same as an option.
    Flag(&'static str),
}

impl Origin {
    /// `text`, which is about a setting, behind where that stands.
    pub(super) fn before(&self, text: &str) -> String {
        match self {
            Self::File { .. } | Self::Environment { .. } => format!("{self}: {text}"),
            // Who typed it knows where.
            Self::CommandLine | Self::Flag(_) => text.to_owned(),
        }
    }

    /// What kind of place it is, as the contract of `config --json` has it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::Environment { .. } => "environment",
            Self::CommandLine | Self::Flag(_) => "command-line",
        }
    }
}

/// The place, for people.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment { variable } => f.write_str(variable),
            Self::CommandLine => f.write_str("-D"),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}
