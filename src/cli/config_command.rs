//! `config`: every option with its default, unit and meaning.

use clap::Args;
use regrow_runtime::{ConfigOption, OptionError, Options};
use serde_json::json;

use super::{console::Console, error::CliError, process_settings::process_options};

/// Which options.
#[derive(Debug, Args)]
pub(crate) struct ConfigFlags {
    /// Only this option
    #[arg(value_name = "KEY")]
    key: Option<String>,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
}

/// `config`: prints the table of options.
pub(crate) fn config(flags: &ConfigFlags, console: &Console) -> Result<(), CliError> {
    let mut options = Options::table();
    options.extend(process_options());
    if let Some(key) = &flags.key {
        options.retain(|option| option.is_named(key));
        if options.is_empty() {
            let error = OptionError::unknown(key, &process_options());
            return Err(CliError::Usage(error.to_string()));
        }
    }
    for option in &options {
        console.result(&if flags.json { json_line(option) } else { text(option) });
    }
    Ok(())
}

fn json_line(option: &ConfigOption) -> String {
    json!({
        "key": option.key,
        "aliases": option.aliases,
        "default": option.default,
        "unit": option.kind.to_string(),
        "meaning": option.meaning,
        "flink": option.flink,
    })
    .to_string()
}

fn text(option: &ConfigOption) -> String {
    let aliases = if option.aliases.is_empty() {
        String::new()
    } else {
        format!(" (also {})", option.aliases.join(", "))
    };
    format!(
        "{}{aliases}\n    default: {} ({})\n    {}",
        option.key, option.default, option.kind, option.meaning
    )
}
