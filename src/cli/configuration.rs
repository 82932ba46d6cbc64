//! The settings of a command, and where each came from.
//!
//! What comes later in this list wins:
//! 1. the default of the option;
//! 2. a file: that of `-c`, or else `config.yaml` in the directory that `REGROW_CONF_DIR` names;
//! 3. the environment: `REGROW_JOBMANAGER_RPC_PORT` for `jobmanager.rpc.port`;
//! 4. `-D key=value`, of which the last counts;
//! 5. a flag that says the same, such as `--data-dir`.

mod config_file;
mod environment;
mod setting;

use std::{
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use regrow_runtime::{ConfigOption, OptionError, Options, with_causes};

pub(crate) use self::{
    environment::variable,
    setting::{Origin, Setting},
};
use super::{
    error::CliError,
    process_settings::{ProcessSettings, process_options},
    run_flags::{DATA_DIRECTORY_KEY, DataFlags},
};
use crate::run_request::data_directory_default;

/// Environment variable that names a directory with a file of settings.
pub(crate) const DIRECTORY_VARIABLE: &str = "REGROW_CONF_DIR";

/// Name of the file of settings in that directory.
const FILE_NAME: &str = "config.yaml";

/// The settings of a command.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    /// Every setting; of several of one option the last counts.
    settings: Vec<Setting>,
}

impl Configuration {
    /// What the flags of a command, the environment and a file say.
    pub(crate) fn load(flags: &DataFlags) -> Result<Self, CliError> {
        Self::of(flags, env::vars_os())
    }

    /// As [`load`](Self::load), with the environment as an argument.
    fn of(
        flags: &DataFlags,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, CliError> {
        let options = all_options();
        let environment = environment::read(variables, &options)?;
        let mut settings = match &flags.config {
            Some(path) => config_file::read(path)?,
            None => match &environment.directory {
                Some(directory) => in_directory(directory)?,
                None => Vec::new(),
            },
        };
        settings.extend(environment.settings);
        settings.extend(flags.settings.iter().map(|(key, value)| Setting {
            key: key.clone(),
            value: value.clone(),
            origin: Origin::CommandLine,
        }));
        settings.extend(flags.data_dir.iter().map(|directory| Setting {
            key: DATA_DIRECTORY_KEY.to_owned(),
            value: directory.to_string_lossy().into_owned(),
            origin: Origin::Flag("--data-dir"),
        }));
        let configuration = Self { settings };
        configuration.check_keys(&options)?;
        configuration.options()?;
        ProcessSettings::of(&configuration)?;
        configuration.check_directory()?;
        Ok(configuration)
    }

    /// The setting of `option` that counts, if there is one.
    pub(crate) fn setting(&self, option: &ConfigOption) -> Option<&Setting> {
        self.settings.iter().rev().find(|setting| option.is_named(&setting.key))
    }

    /// The value of the option called `key`, if one is set.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.named(key).map(|setting| setting.value.as_str())
    }

    /// Where runs are kept.
    pub(crate) fn directory(&self) -> PathBuf {
        self.value(DATA_DIRECTORY_KEY).map_or_else(data_directory_default, PathBuf::from)
    }

    /// Refuses a data directory that is something else. One that is not there yet is made.
    fn check_directory(&self) -> Result<(), CliError> {
        let directory = self.directory();
        let is_other = match directory.metadata() {
            Ok(metadata) => !metadata.is_dir(),
            Err(error) => error.kind() == io::ErrorKind::NotADirectory,
        };
        if !is_other {
            return Ok(());
        }
        Err(CliError::Usage(format!(
            "the data directory {} is no directory, nor can one be made there; name another with \
             --data-dir",
            directory.display()
        )))
    }

    /// The options of a job.
    pub(crate) fn options(&self) -> Result<Options, CliError> {
        self.read(self.settings.iter().map(|setting| (&*setting.key, &*setting.value)))
    }

    /// The options of a run that goes on: as they were recorded, but for what the command line says.
    pub(crate) fn options_of_resumed(
        &self,
        recorded: &[(String, String)],
    ) -> Result<Options, CliError> {
        let recorded = recorded.iter().map(|(key, value)| (&**key, &**value));
        let said = self.settings.iter().filter(|setting| setting.origin == Origin::CommandLine);
        self.read(recorded.chain(said.map(|setting| (&*setting.key, &*setting.value))))
    }

    /// Says that the value of the option called `key` is not allowed, and where it stands.
    pub(crate) fn wrong(&self, key: &str, allowed: &str) -> CliError {
        let value = self.value(key).unwrap_or_default();
        self.blame(key, &format!("{key} cannot be {value:?}: it is {allowed}"))
    }

    fn named(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().rev().find(|setting| setting.key == key)
    }

    fn read<'a>(
        &self,
        settings: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Options, CliError> {
        Options::from_settings_beside(settings, &process_options()).map_err(|error| {
            let text = with_causes(&error);
            match &error {
                OptionError::BadValue { key, .. } => self.blame(key, &text),
                OptionError::UnknownKey { .. } | OptionError::Bounds { .. } => {
                    CliError::Usage(text)
                }
            }
        })
    }

    fn blame(&self, key: &str, text: &str) -> CliError {
        match self.named(key) {
            Some(setting) => CliError::Usage(setting.origin.before(text)),
            None => CliError::Usage(text.to_owned()),
        }
    }

    fn check_keys(&self, options: &[ConfigOption]) -> Result<(), CliError> {
        let known = |setting: &&Setting| options.iter().any(|option| option.is_named(&setting.key));
        match self.settings.iter().find(|setting| !known(setting)) {
            None => Ok(()),
            Some(Setting { key, origin, .. }) => {
                let error = OptionError::unknown(key, &process_options());
                Err(CliError::Usage(origin.before(&error.to_string())))
            }
        }
    }
}

/// Every option there is, those of jobs first.
pub(crate) fn all_options() -> Vec<ConfigOption> {
    Options::table().into_iter().chain(process_options()).collect()
}

fn in_directory(directory: &Path) -> Result<Vec<Setting>, CliError> {
    let path = directory.join(FILE_NAME);
    if !path.is_file() {
        return Err(CliError::Usage(format!(
            "{DIRECTORY_VARIABLE} names the directory {}, which has no {FILE_NAME}: put one there, \
             unset the variable, or name a file with -c",
            directory.display()
        )));
    }
    config_file::read(&path)
}

#[cfg(test)]
mod tests;
