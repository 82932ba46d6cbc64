//! `config`: every option with its value, where that came from, its unit and its meaning.

use clap::Args;
use regrow_runtime::{ConfigOption, OptionError};
use serde_json::{Value, json};

use super::{
    configuration::{Configuration, Setting, all_options, variable},
    console::Console,
    error::CliError,
    process_settings::process_options,
    run_flags::DataFlags,
};

/// Which options.
#[derive(Debug, Args)]
pub(crate) struct ConfigFlags {
    /// Only this option
    #[arg(value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    data: DataFlags,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
}

/// `config`: prints the table of options.
pub(crate) fn config(flags: &ConfigFlags, console: &Console) -> Result<(), CliError> {
    let mut options = all_options();
    if let Some(key) = &flags.key {
        options.retain(|option| option.is_named(key));
        if options.is_empty() {
            let error = OptionError::unknown(key, &process_options());
            return Err(CliError::Usage(error.to_string()));
        }
    }
    let configuration = Configuration::load(&flags.data)?;
    for option in &options {
        let setting = configuration.setting(option);
        console.result(&if flags.json {
            json_line(option, setting)
        } else {
            text(option, setting)
        });
    }
    Ok(())
}

fn json_line(option: &ConfigOption, setting: Option<&Setting>) -> String {
    json!({
        "key": option.key,
        "aliases": option.aliases,
        "value": setting.map_or(&option.default, |setting| &setting.value),
        "source": setting.map_or("default", |setting| setting.origin.kind()),
        "place": setting.map_or(Value::Null, |setting| json!(setting.origin.to_string())),
        "default": option.default,
        "unit": option.kind.to_string(),
        "environment": variable(option.key),
        "meaning": option.meaning,
        "flink": option.flink,
    })
    .to_string()
}

fn text(option: &ConfigOption, setting: Option<&Setting>) -> String {
    let aliases = if option.aliases.is_empty() {
        String::new()
    } else {
        format!(" (also {})", option.aliases.join(", "))
    };
    let value = setting.map_or_else(String::new, |setting| {
        format!("    value: {} (from {})\n", setting.value, setting.origin)
    });
    format!(
        "{}{aliases}\n{value}    default: {} ({})\n    {}",
        option.key, option.default, option.kind, option.meaning
    )
}

#[cfg(test)]
mod tests;
