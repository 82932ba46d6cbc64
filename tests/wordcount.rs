//! The job `wordcount`, as a user runs it: the counts are right, whatever is killed.

#[expect(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a helper of tests, which share it"
)]
#[path = "support/sandbox.rs"]
mod sandbox;

use std::fs;

use sandbox::{Sandbox, assert_finished_stays_finished, count};

/// So many source tasks that some have finished at any kill.
const TASKS: &str = "-D execution.batch.adaptive.auto-parallelism.default-source-parallelism=16 \
     -D execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task=64kb";

fn with_text(bytes: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.fine(&format!("generate text --bytes {bytes} --output text"));
    sandbox
}

#[test]
fn the_counts_are_those_of_a_plain_count() {
    let sandbox = with_text("8mb");
    let answer = sandbox.fine("run wordcount --input text --output counts --slots 2 --json");
    assert_eq!(sandbox.output("counts"), sandbox.counted("text"));
    let result = answer.json();
    assert_eq!(result["state"], "FINISHED");
    assert_eq!(result["recoveries"], 0);
    assert!(result["error"].is_null() && result["duration_ms"].is_u64(), "{result}");
    let id = result["job_id"].as_str().unwrap();
    assert!(answer.err.starts_with(&format!("job {id}\n")), "{}", answer.err);
}

#[test]
fn p1_p2_kills_of_the_coordinator_change_no_count_and_repeat_no_finished_task() {
    let sandbox = with_text("16mb");
    let answer = sandbox.fine(&format!(
        "run wordcount --input text --output counts --slots 2 --ledger ledger --json {TASKS} \
         --kill-jobmaster-at 20% --kill-jobmaster-at 50%:panic --kill-jobmaster-at 80%"
    ));
    assert_eq!(sandbox.output("counts"), sandbox.counted("text"));
    assert_eq!(answer.json()["recoveries"], 3);
    let ledger = sandbox.ledger("ledger");
    assert_eq!(count(&ledger, "kill"), 3);
    assert_finished_stays_finished(&ledger);
}

#[test]
fn a_run_that_was_killed_whole_resumes_where_it_was() {
    let sandbox = with_text("16mb");
    let run = format!("run wordcount --input text --output counts --ledger ledger {TASKS}");
    let mut running = sandbox.start(&format!("{run} --slots 1 --job-id whole"));
    running.until("words are being counted", |line| {
        line.contains("count_by_key") && !line.contains("count_by_key 0/")
    });
    running.kill();
    let answer = sandbox.fine("run --resume --slots 2 --json");
    assert_eq!(answer.json()["job_id"], "whole");
    assert_eq!(sandbox.output("counts"), sandbox.counted("text"));
    assert_finished_stays_finished(&sandbox.ledger("ledger"));
}

#[test]
fn output_that_is_there_is_replaced_only_when_asked() {
    let sandbox = with_text("64kb");
    fs::create_dir(sandbox.path("counts")).unwrap();
    fs::write(sandbox.path("counts/part-00000.csv"), "old,1\n").unwrap();
    fs::write(sandbox.path("counts/part-77777.csv"), "old,1\n").unwrap();
    let refused = sandbox.regrow("run wordcount --input text --output counts");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("--overwrite"), "{}", refused.err);
    assert_eq!(sandbox.output("counts"), ["old,1", "old,1"]);
    sandbox.fine("run wordcount --input text --output counts --overwrite");
    assert_eq!(sandbox.output("counts"), sandbox.counted("text"));
}

#[test]
fn text_that_is_no_utf_8_fails_the_job_with_file_and_offset() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("texts")).unwrap();
    fs::write(sandbox.path("texts/a"), "good\n").unwrap();
    fs::write(sandbox.path("texts/b"), b"good\nbad \xff\n").unwrap();
    let answer = sandbox.regrow("run wordcount --input texts --output counts --json");
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let result = answer.json();
    assert_eq!(result["state"], "FAILED");
    let error = result["error"].as_str().unwrap();
    assert!(error.contains("texts/b") && error.contains("byte 9"), "{error}");
}

#[test]
fn a_missing_input_fails_with_its_path() {
    let sandbox = Sandbox::new();
    let answer = sandbox.regrow("run wordcount --input nowhere --output counts");
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.err.contains("nowhere"), "{}", answer.err);
}

#[test]
fn an_empty_input_gives_an_empty_output() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("text"), " \n\n").unwrap();
    sandbox.fine("run wordcount --input text --output counts");
    assert_eq!(sandbox.published("counts"), [""; 0]);
}

#[test]
fn the_same_job_again_gives_the_result_that_is_there() {
    let sandbox = with_text("64kb");
    let line = "run wordcount --input text --output counts --job-id once --ledger ledger --json";
    let first = sandbox.fine(line).json();
    let starts = count(&sandbox.ledger("ledger"), "start");
    let second = sandbox.fine(line).json();
    assert_eq!(first["run_id"], second["run_id"]);
    assert_eq!(count(&sandbox.ledger("ledger"), "start"), starts);
    let other = sandbox.regrow("run wordcount --input text --output other --job-id once");
    assert_eq!(other.code, Some(2), "{other:?}");
}
