//! Why settings are refused.

use thiserror::Error;

use super::{ConfigOption, Options};

/// The settings cannot be used; the user must change them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OptionError {
    /// There is no such key.
    #[error("there is no option {key:?}{}; `config` lists all", hint(nearest.as_deref()))]
    UnknownKey {
        /// What was given.
        key: String,
        /// The key that it may have been meant to be.
        nearest: Option<String>,
    },
    /// The key is known, and its value is not allowed.
    #[error("cannot set {key} to {value:?}: use {allowed}")]
    BadValue {
        /// Which key, as it was given.
        key: String,
        /// What was given.
        value: String,
        /// What is allowed, with an example.
        allowed: String,
    },
    /// No parallelism could satisfy both bounds.
    #[error(
        "execution.batch.adaptive.auto-parallelism.min-parallelism is {min}, above max-parallelism \
         which is {max}: lower the one or raise the other"
    )]
    Bounds {
        /// The least parallelism.
        min: u32,
        /// The greatest parallelism.
        max: u32,
    },
}

impl OptionError {
    /// `key` is neither an option of a run nor one of `others`.
    pub fn unknown(key: &str, others: &[ConfigOption]) -> Self {
        Self::UnknownKey { key: key.to_owned(), nearest: nearest(key, others) }
    }
}

/// The key that ends as the given one does, if somebody left out its beginning; else the one with
/// the fewest differing letters, if at most a third of them differ.
fn nearest(key: &str, others: &[ConfigOption]) -> Option<String> {
    let options = Options::table();
    let keys: Vec<&str> = options.iter().chain(others).map(|option| option.key).collect();
    let is_end = |known: &&&str| known.strip_suffix(key).is_some_and(|head| head.ends_with('.'));
    if let Some(known) = keys.iter().find(is_end) {
        return Some((*known).to_owned());
    }
    let distances = keys.iter().map(|known| (strsim::damerau_levenshtein(key, known), known));
    let (distance, known) = distances.min()?;
    (distance <= key.len() / 3).then(|| (*known).to_owned())
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|known| format!(" (did you mean `{known}`?)")).unwrap_or_default()
}
