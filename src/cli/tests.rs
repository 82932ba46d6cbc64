//! The command line as a whole.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::*;

fn parse(line: &str) -> Result<ArgMatches, clap::Error> {
    command(&Jobs::built_in()).unwrap().try_get_matches_from(line.split_whitespace())
}

#[test]
fn the_command_line_is_consistent() {
    command(&Jobs::built_in()).unwrap().debug_assert();
}

#[test]
fn every_command_has_help_with_an_example() {
    for line in [
        "run",
        "run wordcount",
        "run stages",
        "submit",
        "submit sort",
        "jobmanager",
        "taskmanager",
        "list",
        "status",
        "wait",
        "cancel",
        "demo",
        "events",
        "recovery",
        "config",
        "store verify",
        "store dump",
        "generate text",
    ] {
        let help = parse(&format!("regrow {line} --help")).unwrap_err().to_string();
        assert!(help.contains("regrow ") && help.contains("Example"), "{line}: {help}");
    }
}

#[test]
fn examples_call_the_program_by_its_name() {
    let command = named_in_examples(command(&Jobs::built_in()).unwrap(), "/opt/bin/counter");
    for line in ["run", "status", "store verify"] {
        let words = format!("counter {line} --help");
        let help = command.clone().try_get_matches_from(words.split_whitespace()).unwrap_err();
        let help = help.to_string();
        assert!(help.contains(&format!("\n  counter {line}")), "{help}");
        assert!(!help.contains("\n  regrow"), "{help}");
    }
}

#[test]
fn the_help_of_a_job_begins_with_what_the_job_does() {
    let help = parse("regrow run wordcount --help").unwrap_err().to_string();
    assert!(help.starts_with("Counts words"), "{help}");
    let list = parse("regrow run --help").unwrap_err().to_string();
    assert!(list.contains("wordcount  Counts words"), "{list}");
}

#[test]
fn every_fixed_form_is_understood() {
    for line in [
        "regrow run wordcount --input a --output b",
        "regrow run --task-managers 2 --slots 3 stages --stage 20x2s --stage 1x1s",
        "regrow run stages --stage 1x1s --kill-jobmaster-at 50% --kill-jobmaster-at 2s:panic",
        "regrow run stages --stage 4x1s --fail stage=0,subtask=1,attempt=0 --splits 8 --bytes 10mb",
        "regrow run stages --stage 4x1s --pointwise --ledger f --job-id x --json --quiet",
        "regrow run wordcount --input a --output b --overwrite --data-dir d -D a=b -D c=d",
        "regrow run --resume",
        "regrow run --resume --data-dir d --job-id x",
        "regrow demo",
        "regrow events x --json --data-dir d",
        "regrow recovery x --json",
        "regrow config --json",
        "regrow config jobmanager.rpc.port -c f -D a=b",
        "regrow jobmanager -c f --data-dir d",
        "regrow submit stages -c f --stage 1x1s",
        "regrow store verify p",
        "regrow store dump --data-dir d x",
        "regrow generate text --bytes 1mb --output o --seed 1 --files 2",
    ] {
        assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
    }
}

#[test]
fn mistyped_names_get_a_suggestion_and_exit_code_2() {
    for (line, meant) in [
        ("regrow rum", "run"),
        ("regrow run wordcont --input a --output b", "wordcount"),
        ("regrow run wordcount --imput a --output b", "--input"),
        ("regrow run stages --stage 1x1s --slot 2", "--slots"),
        ("regrow store verfy x", "verify"),
    ] {
        let error = parse(line).unwrap_err();
        assert!(error.to_string().contains(meant), "{line}: {error}");
        assert_eq!(CliError::from(error).exit_code(), 2);
    }
}

#[test]
fn an_unknown_job_is_answered_with_those_that_there_are() {
    let error = unknown_job(parse("regrow run wordcont --input a").unwrap_err(), &Jobs::built_in());
    assert_eq!(error.exit_code(), 2);
    assert_eq!(
        error.to_string(),
        "there is no job wordcont; this program has: join, sort, stages, wordcount; did you mean \
         wordcount?"
    );
    let other = unknown_job(parse("regrow run sort --imput a").unwrap_err(), &Jobs::built_in());
    assert!(other.to_string().contains("--input"), "{other}");
}

#[derive(clap::Args, Serialize, Deserialize)]
struct Clashing {
    #[arg(long)]
    ledger: PathBuf,
}

#[test]
fn a_job_whose_argument_is_called_like_a_flag_of_every_job_is_refused() {
    let mut jobs = Jobs::default();
    jobs.add("clash", |_: &crate::Environment, _: Clashing| Ok(()));
    let error = command(&jobs).unwrap_err().to_string();
    assert!(error.contains("ledger"), "{error}");
}
