//! Settings in the environment: `REGROW_` and the key in capitals.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use regrow_runtime::ConfigOption;

use super::{
    super::{LOG_VARIABLE, error::CliError},
    DIRECTORY_VARIABLE, Origin, Setting,
};

/// What the names of our variables begin with.
const PREFIX: &str = "REGROW_";

/// What keys of our own begin with; the prefix of the variable says it already.
const KEY_PREFIX: &str = "regrow.";

/// What the environment says.
#[derive(Debug, Default)]
pub(super) struct Environment {
    /// A directory with a file of settings.
    pub(super) directory: Option<PathBuf>,
    pub(super) settings: Vec<Setting>,
}

/// The variable that stands for the option called `key`: `REGROW_JOBMANAGER_RPC_PORT` for
/// `jobmanager.rpc.port`.
pub(crate) fn variable(key: &str) -> String {
    let mut name = PREFIX.to_owned();
    let mut after_lower_case = false;
    for char in key.strip_prefix(KEY_PREFIX).unwrap_or(key).chars() {
        if char.is_ascii_uppercase() && after_lower_case {
            name.push('_');
        }
        after_lower_case = char.is_ascii_lowercase();
        name.push(if char.is_ascii_alphanumeric() { char.to_ascii_uppercase() } else { '_' });
    }
    name
}

/// What the environment says; an empty variable says nothing.
///
/// A variable that begins as ours do is an error if its name is like one of ours: a slip must not
/// pass unseen. Others are left alone, for systems that start containers set variables named after
/// services.
pub(super) fn read(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    options: &[ConfigOption],
) -> Result<Environment, CliError> {
    let mut environment = Environment::default();
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        if value.is_empty() || name == LOG_VARIABLE {
            continue;
        }
        if name == DIRECTORY_VARIABLE {
            environment.directory = Some(PathBuf::from(value));
            continue;
        }
        match options.iter().find(|option| variable(option.key) == name) {
            Some(option) => environment.settings.push(setting(option, name, &value)?),
            None => check_strange(name, options)?,
        }
    }
    Ok(environment)
}

fn setting(option: &ConfigOption, name: &str, value: &OsStr) -> Result<Setting, CliError> {
    let Some(value) = value.to_str() else {
        return Err(CliError::Usage(format!(
            "the environment variable {name} is no UTF-8: {}",
            value.display()
        )));
    };
    Ok(Setting {
        key: option.key.to_owned(),
        value: value.trim().to_owned(),
        origin: Origin::Environment { variable: name.to_owned() },
    })
}

/// Refuses a variable that is none of ours, and is almost.
fn check_strange(name: &str, options: &[ConfigOption]) -> Result<(), CliError> {
    let own = |name: &str| name.strip_prefix(PREFIX).unwrap_or(name).to_owned();
    let ours = options.iter().map(|option| variable(option.key));
    let ours = ours.chain([LOG_VARIABLE.to_owned(), DIRECTORY_VARIABLE.to_owned()]);
    let distance = |ours: &String| strsim::damerau_levenshtein(&own(name), &own(ours));
    match ours.min_by_key(distance) {
        Some(near) if distance(&near) <= own(name).len() / 3 => Err(CliError::Usage(format!(
            "the environment variable {name} means nothing (did you mean {near}?); unset it"
        ))),
        _ => Ok(()),
    }
}
