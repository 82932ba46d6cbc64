//! The job `wordcount`, as a user runs it: the counts are right, whatever is killed.

#[expect(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a helper of tests, which share it"
)]
#[path = "support/sandbox.rs"]
mod sandbox;

use std::{fs, io::Write as _};

use flate2::{Compression, write::GzEncoder};
use sandbox::{Sandbox, assert_finished_stays_finished, count};

/// So many source tasks that some have finished at any kill.
const TASKS: &str = "-D execution.batch.adaptive.auto-parallelism.default-source-parallelism=16 \
     -D execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task=64kb";

#[expect(clippy::expect_used, reason = "a vector takes all")]
fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

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
fn a_pattern_names_files_that_may_be_compressed() {
    let sandbox = Sandbox::new();
    for directory in ["logs/2024-01", "logs/2024-02", "logs/2025-01"] {
        fs::create_dir_all(sandbox.path(directory)).unwrap();
        fs::write(sandbox.path(&format!("{directory}/part-0.txt")), "plain words\n").unwrap();
        let member = gzip("compressed words\n");
        fs::write(
            sandbox.path(&format!("{directory}/part-1.txt.gz")),
            [&*member, &*member].concat(),
        )
        .unwrap();
    }
    sandbox.fine("run wordcount --input logs/2024-*/part-* --output counts --slots 2");
    assert_eq!(sandbox.output("counts"), ["compressed,4", "plain,2", "words,6"]);
    let answer = sandbox.regrow("run wordcount --input logs --output more --json");
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let result = answer.json();
    assert!(result["error"].as_str().unwrap().contains("logs/**/*"), "{result}");
}

#[test]
fn p4_a_cut_gzip_file_fails_the_job_with_its_path() {
    let sandbox = Sandbox::new();
    let whole = gzip(&"words ".repeat(1_000));
    fs::write(sandbox.path("text.gz"), &whole[..whole.len() - 9]).unwrap();
    let answer = sandbox.regrow("run wordcount --input text.gz --output counts --json");
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let result = answer.json();
    let error = result["error"].as_str().unwrap();
    assert!(error.contains("text.gz") && error.contains("gzip -t"), "{error}");
    assert!(!sandbox.path("counts/part-00000.csv").exists());
}

#[test]
fn p4_a_file_that_changed_between_two_lives_of_a_run_fails_it() {
    let sandbox = with_text("16mb");
    let run = format!("run wordcount --input text --output counts --ledger ledger {TASKS}");
    let running = sandbox.start(&format!("{run} --slots 1 --job-id whole"));
    sandbox.wait_for_starts("ledger", 0, 1);
    running.kill();
    let mut file = fs::File::options().append(true).open(sandbox.path("text")).unwrap();
    file.write_all(b"more\n").unwrap();
    let answer = sandbox.regrow("run --resume --slots 2 --json");
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let result = answer.json();
    let error = result["error"].as_str().unwrap();
    assert!(error.contains("changed since the input was listed"), "{error}");
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
