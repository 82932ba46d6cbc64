//! `demo`: a word count whose coordinator is killed half-way.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use regrow_actors::launch::LocalRun;
use regrow_runtime::{Fate, KillHow, KillPoint, KillWhen, Options, RecoveryReport, with_causes};
use serde_json::json;

use super::{console::Console, error::CliError, generate_command, launcher, launcher::Launched};
use crate::{
    byte_count::ByteCount,
    job_arguments::JobArguments,
    jobs::{Jobs, word_count::WordCount},
    program_factory::ProgramFactory,
    run_request::{SLOTS_MAX, random_job},
};

/// Tasks that read the text: many more than slots, so that some are done when the kill comes.
const SOURCE_TASKS: &str = "32";

/// How to show it.
#[derive(Debug, Args)]
pub(crate) struct DemoFlags {
    /// How much text to count
    #[arg(long, value_name = "SIZE", default_value = "64mb")]
    bytes: ByteCount,
    /// When to kill the coordinator; repeatable [default: 50%]
    #[arg(long, value_name = "WHEN")]
    kill_jobmaster_at: Vec<KillPoint>,
    /// How many tasks run at once
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SLOTS_MAX)))]
    slots: u32,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

/// `demo`: fine only if the counts equal those of a plain count.
pub(crate) fn demo(flags: &DemoFlags, console: &Arc<Console>) -> Result<(), CliError> {
    let directory = tempfile::Builder::new().prefix("regrow-demo-").tempdir();
    let directory =
        directory.map_err(|error| CliError::Failed(format!("cannot make a directory: {error}")))?;
    let (input, output) = (directory.path().join("text.txt"), directory.path().join("counts"));
    let say = |line: &str| {
        if !flags.quiet {
            console.say(line);
        }
    };
    say(&format!("making {} of text from a bundled book", flags.bytes));
    generate_command::write(&input, flags.bytes.0, 42)?;
    say("counting its words, while the coordinator of the job is killed:");
    let run = local_run(flags, directory.path(), &input, &output)?;
    let launched = launcher::launch(run, console, flags.quiet)?;
    launcher::report(&launched.result, false, flags.quiet, console)?;
    say("counting them again, plainly, in one thread");
    let plain = plain_count(&input)?;
    let found = published_count(&output)?;
    let equal = plain == found;
    conclude(flags, &launched, found.len(), equal, console);
    if equal {
        return Ok(());
    }
    Err(CliError::Failed(format!(
        "the counts differ: {} words with the kill, {} without",
        found.len(),
        plain.len()
    )))
}

fn local_run(
    flags: &DemoFlags,
    directory: &Path,
    input: &Path,
    output: &Path,
) -> Result<LocalRun, CliError> {
    let word_count = WordCount { input: input.to_owned(), output: output.to_owned() };
    let arguments = regrow_protocol::encode(&word_count)
        .map_err(|error| CliError::Failed(with_causes(&error)))?;
    let arguments = JobArguments { working_directory: None, overwrite: false, arguments };
    let key = "execution.batch.adaptive.auto-parallelism.default-source-parallelism";
    let options = Options::from_settings([(key, SOURCE_TASKS)])
        .map_err(|error| CliError::Failed(with_causes(&error)))?;
    let half_way = || vec![KillPoint { when: KillWhen::Percent(50), how: KillHow::Stop }];
    let kills = flags.kill_jobmaster_at.clone();
    Ok(LocalRun {
        job: random_job()?,
        named: false,
        job_name: "wordcount".to_owned(),
        arguments: arguments.to_bytes().map_err(CliError::Failed)?,
        ledger: None,
        settings: options.to_settings(),
        options,
        data_directory: directory.join("data"),
        task_managers: 1,
        slots: flags.slots,
        kills: if kills.is_empty() { half_way() } else { kills },
        factory: Arc::new(ProgramFactory::new(Jobs::built_in())),
    })
}

/// Says what the recoveries kept and whether the counts are right.
fn conclude(flags: &DemoFlags, launched: &Launched, words: usize, equal: bool, console: &Console) {
    let count = |fates: &[Fate]| -> usize {
        let of = |report: &RecoveryReport| {
            report.lines.iter().filter(|line| fates.contains(&line.fate)).count()
        };
        launched.recoveries.iter().map(of).sum()
    };
    let kept = count(&[Fate::KeptLog, Fate::KeptFile, Fate::Adopted]);
    let again = count(&[Fate::Rerun]);
    if flags.json {
        let object = json!({
            "job_id": launched.result.outcome.job,
            "recoveries": launched.recoveries.len(),
            "kept": kept,
            "rerun": again,
            "words": words,
            "equal": equal,
        });
        console.result(&object.to_string());
        return;
    }
    let times = match launched.recoveries.len() {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    console.result(&format!(
        "the coordinator died {times}: {kept} finished tasks were kept, {again} unfinished ones ran \
         afterwards"
    ));
    let verdict = if equal { "equal" } else { "NOT equal" };
    console.result(&format!("the counts of {words} words are {verdict} to a plain count"));
}

fn plain_count(input: &Path) -> Result<BTreeMap<String, u64>, CliError> {
    let text = read(input)?;
    let mut counts = BTreeMap::new();
    for word in text.split_whitespace() {
        let word = word.to_lowercase();
        match counts.get_mut(&word) {
            Some(count) => *count += 1,
            None => {
                counts.insert(word, 1);
            }
        }
    }
    Ok(counts)
}

/// What the job wrote.
fn published_count(output: &Path) -> Result<BTreeMap<String, u64>, CliError> {
    let failed = |error: &dyn std::fmt::Display| {
        CliError::Failed(format!("cannot read the counts in {}: {error}", output.display()))
    };
    let mut counts = BTreeMap::new();
    for entry in fs::read_dir(output).map_err(|error| failed(&error))? {
        let path: PathBuf = entry.map_err(|error| failed(&error))?.path();
        if path.is_dir() {
            continue;
        }
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_path(&path)
            .map_err(|error| failed(&error))?;
        for record in reader.deserialize() {
            let (word, count): (String, u64) = record.map_err(|error| failed(&error))?;
            *counts.entry(word).or_default() += count;
        }
    }
    Ok(counts)
}

fn read(path: &Path) -> Result<String, CliError> {
    fs::read_to_string(path)
        .map_err(|error| CliError::Failed(format!("cannot read {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_files_add_up_to_counts() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("part-00000.csv"), "a,2\n\"b,\",1\n").unwrap();
        fs::write(directory.path().join("part-00002.csv"), "c,3\n").unwrap();
        let counts = published_count(directory.path()).unwrap();
        let expected = [("a", 2), ("b,", 1), ("c", 3)].map(|(word, n)| (word.to_owned(), n));
        assert_eq!(counts, BTreeMap::from(expected));
        fs::write(directory.path().join("text"), "A b,\na\tC c c").unwrap();
        assert_eq!(plain_count(&directory.path().join("text")).unwrap(), counts);
    }
}
