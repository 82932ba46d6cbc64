//! The flags of `run`, which every job has.

use std::path::PathBuf;

use clap::{ArgMatches, Args, FromArgMatches};
use regrow_protocol::JobId;
use regrow_runtime::{ConfigOption, KillPoint, ValueKind};

use crate::run_request::{DATA_DIRECTORY, SLOTS_MAX, TASK_MANAGERS_MAX};

/// The setting that names the data directory.
pub(crate) const DATA_DIRECTORY_KEY: &str = "regrow.data-dir";

/// The flags of `run`, which every job has.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options of every job")]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) data: DataFlags,
    /// Number of task managers
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(TASK_MANAGERS_MAX)))]
    pub(crate) task_managers: Option<u32>,
    /// Slots of each task manager: how many tasks it runs at once [default: as
    /// taskmanager.numberOfTaskSlots says]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SLOTS_MAX)))]
    pub(crate) slots: Option<u32>,
    /// Kill the coordinator when so many tasks have finished (50%) or after a time (2s), to watch
    /// the job regrow; with `:panic` behind it lets it panic. Repeatable
    #[arg(long, value_name = "WHEN")]
    pub(crate) kill_jobmaster_at: Vec<KillPoint>,
    /// File to which each attempt appends a line at its start and one at its end
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: Option<PathBuf>,
    /// Name of the job: [A-Za-z0-9_-], up to 64; the same name again resumes or joins it
    #[arg(long, value_name = "ID")]
    pub(crate) job_id: Option<JobId>,
    /// Resume the interrupted run of the data directory
    #[arg(long)]
    pub(crate) resume: bool,
    /// Replace output files that are there
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Where runs are kept, and settings.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DataFlags {
    /// Directory in which runs are kept [default: ./.regrow]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// File of settings (YAML), see `config` [default: config.yaml in `$REGROW_CONF_DIR`, if set]
    #[arg(short = 'c', long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A setting, see `config`; repeatable
    #[arg(short = 'D', value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) settings: Vec<(String, String)>,
}

impl RunFlags {
    /// Takes flags that stand before and behind the name of the job together; those behind it win.
    pub(crate) fn from_both(before: &ArgMatches, behind: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::from_arg_matches(before)?;
        let more = Self::from_arg_matches(behind)?;
        flags.data.settings.extend(more.data.settings);
        flags.kill_jobmaster_at.extend(more.kill_jobmaster_at);
        Ok(Self {
            data: DataFlags {
                data_dir: more.data.data_dir.or(flags.data.data_dir),
                config: more.data.config.or(flags.data.config),
                settings: flags.data.settings,
            },
            task_managers: more.task_managers.or(flags.task_managers),
            slots: more.slots.or(flags.slots),
            kill_jobmaster_at: flags.kill_jobmaster_at,
            ledger: more.ledger.or(flags.ledger),
            job_id: more.job_id.or(flags.job_id),
            resume: flags.resume || more.resume,
            overwrite: flags.overwrite || more.overwrite,
            json: flags.json || more.json,
            quiet: flags.quiet || more.quiet,
        })
    }
}

/// The setting that names the data directory, as the table of options has it.
pub(crate) fn data_directory_option() -> ConfigOption {
    ConfigOption {
        key: DATA_DIRECTORY_KEY,
        aliases: &[],
        default: format!("./{DATA_DIRECTORY}"),
        kind: ValueKind::Text,
        meaning: "directory in which runs and the archive are kept",
        flink: false,
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is no setting: write KEY=VALUE, see `config`"))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    fn parse(line: &str) -> Result<RunFlags, clap::Error> {
        let job = RunFlags::augment_args(Command::new("job"));
        let matches = RunFlags::augment_args(Command::new("run").no_binary_name(true))
            .subcommand(job)
            .try_get_matches_from(line.split_whitespace())?;
        match matches.subcommand() {
            Some((_, behind)) => RunFlags::from_both(&matches, behind),
            None => RunFlags::from_arg_matches(&matches),
        }
    }

    #[test]
    fn flags_may_stand_before_and_behind_the_job() {
        let line = "--slots 2 -D a=1 -c x --kill-jobmaster-at 50% job --slots 3 -D b=2 -c y \
                    --kill-jobmaster-at 2s:panic --json";
        let flags = parse(line).unwrap();
        assert_eq!(flags.slots, Some(3));
        assert_eq!(flags.kill_jobmaster_at.len(), 2);
        assert!(flags.json && !flags.quiet);
        assert_eq!(flags.data.settings.len(), 2);
        assert_eq!(flags.data.config, Some(PathBuf::from("y")));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            "--slots 0",
            "--task-managers x",
            "-D novalue",
            "--job-id a/b",
            "--kill-jobmaster-at soon",
            "--kill-jobmaster-at 101%",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
