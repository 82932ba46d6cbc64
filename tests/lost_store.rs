//! Event stores that are gone or damaged between two lives: the run goes on as itself, what its
//! finish records prove does not run again, and the loss is told.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[expect(clippy::expect_used, dead_code, reason = "a helper of tests, which share it")]
#[path = "support/interrupted.rs"]
mod interrupted;
#[expect(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a helper of tests, which share it"
)]
#[path = "support/sandbox.rs"]
mod sandbox;

use std::{
    fs::{self, File},
    path::PathBuf,
};

use interrupted::{CONSUMERS, Interrupted, PRODUCERS, flip_a_byte};
use sandbox::{Answer, Sandbox, assert_finished_stays_finished};
use serde_json::Value;

/// The stores that outlive a process.
const KINDS: [&str; 2] = ["sled", "file"];

/// What the directory of the run notes.
fn noted(run: &Interrupted) -> Value {
    let path = run.sandbox.path(".regrow/runs/x/run.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Harms the store of a run and resumes it: it must go on as itself, with all that had finished.
fn resumed(kind: &str, harm: impl Fn(&Interrupted)) -> (Interrupted, Answer) {
    let run = Interrupted::new(kind);
    harm(&run);
    let id = noted(&run)["identity"]["run"].clone();
    let answer = run.resume();
    assert_eq!(answer.json()["run_id"], id);
    assert_eq!(run.ran_again(), CONSUMERS);
    assert_finished_stays_finished(&run.sandbox.ledger("ledger"));
    (run, answer)
}

fn format_file(run: &Interrupted) -> PathBuf {
    run.store().join("FORMAT")
}

#[test]
fn rule_5_13_a_run_whose_store_is_gone_or_empty_goes_on_and_says_so() {
    for (kind, is_kept) in [("sled", false), ("sled", true), ("file", false)] {
        let (run, answer) = resumed(kind, |run| {
            fs::remove_dir_all(run.store()).unwrap();
            if is_kept {
                fs::create_dir(run.store()).unwrap();
            }
        });
        let told = format!("is gone: what the finish records prove ({PRODUCERS} are there)");
        assert!(answer.err.contains(&told), "{}", answer.err);
        assert!(run.recovery().contains(&told), "{}", run.recovery());
    }
}

#[test]
fn a_run_whose_store_is_gone_is_told_as_such_by_those_who_look() {
    let run = Interrupted::new("file");
    fs::remove_dir_all(run.store()).unwrap();
    for (look, code) in [("events x", 1), ("store verify --data-dir .regrow x", 2)] {
        let answer = run.sandbox.regrow(look);
        assert_eq!(answer.code, Some(code), "{answer:?}");
        assert!(answer.err.contains("or the store was removed"), "{}", answer.err);
    }
    assert!(!run.store().exists());
    run.resume();
}

#[test]
fn rule_5_12_a_job_of_which_nothing_can_be_used_begins_again_and_says_so() {
    let run = Interrupted::new("file");
    fs::remove_dir_all(run.store()).unwrap();
    for partition in (0..PRODUCERS).map(|subtask| run.partition(subtask)) {
        fs::remove_file(partition).unwrap();
    }
    let answer = run.resume();
    assert!(answer.err.contains("is gone: no finish record is left"), "{}", answer.err);
    assert!(answer.err.contains("begins again"), "{}", answer.err);
    assert_eq!(run.ran_again().len(), PRODUCERS as usize + CONSUMERS.len());
}

#[test]
fn rule_5_12_a_store_that_is_damaged_as_a_whole_is_set_aside_until_the_run_is_over() {
    for (kind, content) in [("sled", "regrow-store sled x"), ("file", ""), ("file", "\0\0\0")] {
        let (run, answer) = resumed(kind, |run| fs::write(format_file(run), content).unwrap());
        assert!(answer.err.contains("its file FORMAT says"), "{}", answer.err);
        assert!(answer.err.contains(".regrow/runs/x/store-damaged-1"), "{}", answer.err);
        assert!(run.recovery().contains("its file FORMAT says"), "{}", run.recovery());
    }
}

#[test]
fn rule_5_12_a_damaged_store_stays_beside_the_new_one_while_the_run_is_not_over() {
    let run = Interrupted::new("file");
    fs::write(format_file(&run), "damaged").unwrap();
    let again = run.sandbox.start("run --resume --slots 2 --quiet");
    run.sandbox.wait_for_starts("ledger", 1, 4);
    again.kill();
    let aside = run.sandbox.path(".regrow/runs/x/store-damaged-1");
    assert_eq!(fs::read_to_string(aside.join("FORMAT")).unwrap(), "damaged");
    assert!(run.store().is_dir());
    run.resume();
}

#[test]
fn rule_5_12_damaged_documents_are_told_and_the_log_is_used() {
    let documents = "store/documents";
    for table in ["job-graphs", "results"] {
        let (run, answer) = resumed("file", |run| {
            let path = run.sandbox.path(".regrow/runs/x").join(documents).join(table);
            fs::create_dir_all(&path).unwrap();
            match table {
                "results" => fs::write(path.join("x"), "garbage").unwrap(),
                _ => flip_a_byte(&path.join("x")),
            }
        });
        let told = format!("document x of {table}: ");
        assert!(answer.err.contains(&told), "{}", answer.err);
        assert!(run.recovery().contains(&told), "{}", run.recovery());
        let kept = format!("{PRODUCERS} tasks kept from the log");
        assert!(run.recovery().contains(&kept), "{}", run.recovery());
    }
}

/// Checks that a run is refused with exit code 2 and that nothing of it was moved or begun.
fn assert_refused(run: &Interrupted, line: &str, word: &str) {
    let before = (noted(run), run.sandbox.ledger("ledger"));
    let answer = run.sandbox.regrow(line);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.err.contains(word), "{}", answer.err);
    assert_eq!((noted(run), run.sandbox.ledger("ledger")), before);
    let aside = run.sandbox.files(".regrow", "store-damaged");
    assert!(aside.is_empty(), "{aside:?}");
}

#[test]
fn a_store_that_is_in_use_is_not_damaged() {
    for kind in KINDS {
        let run = Interrupted::new(kind);
        let lock = File::open(run.store().join("lock")).unwrap();
        lock.lock().unwrap();
        assert_refused(&run, "run --resume", "is in use by process");
        lock.unlock().unwrap();
        assert!(!run.resume().err.contains("damaged"));
    }
}

#[test]
fn log_11_a_store_of_a_later_version_is_not_damaged() {
    for kind in KINDS {
        let run = Interrupted::new(kind);
        let today = fs::read(format_file(&run)).unwrap();
        fs::write(format_file(&run), format!("regrow-store {kind} 2\n")).unwrap();
        assert_refused(&run, "run --resume", "has format 2, this program reads 1");
        fs::write(format_file(&run), today).unwrap();
        assert!(!run.resume().err.contains("damaged"));
    }
}

#[test]
fn a_document_of_a_later_version_is_not_damaged() {
    let run = Interrupted::new("file");
    let path = run.store().join("documents/job-graphs/x");
    let today = fs::read(&path).unwrap();
    let mut later = today.clone();
    // Its format, and what its checksum is over.
    later[4] = 2;
    later[28] ^= 1;
    fs::write(&path, later).unwrap();
    assert_refused(&run, "run --resume", "has format 2, this program reads 1");
    fs::write(&path, today).unwrap();
    assert!(!run.resume().err.contains("damaged"));
}

#[test]
fn a_store_that_the_system_does_not_let_read_is_not_damaged() {
    for kind in KINDS {
        let run = Interrupted::new(kind);
        let (format, moved) = (format_file(&run), run.store().join("moved"));
        fs::rename(&format, &moved).unwrap();
        fs::create_dir(&format).unwrap();
        assert_refused(&run, "run --resume", "cannot read");
        fs::remove_dir(&format).unwrap();
        fs::rename(&moved, &format).unwrap();
        assert!(!run.resume().err.contains("damaged"));
    }
}

#[test]
fn rule_1_1_other_arguments_under_the_id_of_a_run_without_store_are_refused() {
    let run = Interrupted::new("sled");
    fs::remove_dir_all(run.store()).unwrap();
    let other = "run stages --stage 5x0s --job-id x";
    assert_refused(&run, other, "exists with other arguments");
    run.resume();
}

#[test]
fn rule_5_13_another_graph_under_the_id_of_a_run_is_refused() {
    let run = Interrupted::new("sled");
    let path = run.sandbox.path(".regrow/runs/x/run.json");
    let today = fs::read_to_string(&path).unwrap();
    let mut other = noted(&run);
    other["identity"]["graph_hash"] = 1.into();
    fs::write(&path, other.to_string()).unwrap();
    assert_refused(&run, "run --resume", "another graph");
    fs::write(&path, today).unwrap();
    run.resume();
}

/// A word count with many tasks and many output files.
fn word_count(kind: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.fine("generate text --bytes 1mb --output text");
    let line = format!(
        "run wordcount --input text --output counts --slots 2 --ledger ledger --job-id x \
         -D job-event.store.type={kind} \
         -D execution.batch.adaptive.auto-parallelism.default-source-parallelism=24 \
         -D execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task=2kb"
    );
    (sandbox, line)
}

fn assert_counted(sandbox: &Sandbox, line: &str) {
    let answer = sandbox.fine(&format!("{line} --json"));
    assert_eq!(answer.json()["state"], "FINISHED");
    assert_eq!(sandbox.output("counts"), sandbox.counted("text"));
    assert_finished_stays_finished(&sandbox.ledger("ledger"));
    sandbox.assert_nothing_left();
}

#[test]
fn rule_5_13_a_word_count_loses_its_store_again_and_again() {
    for kind in KINDS {
        let (sandbox, line) = word_count(kind);
        for (stage, starts) in [(0, 8), (0, 16), (1, 4), (1, 12)] {
            let running = sandbox.start(&format!("{line} --quiet"));
            sandbox.wait_for_starts("ledger", stage, starts);
            running.kill();
            // The last kill may come after the end.
            drop(fs::remove_dir_all(sandbox.path(".regrow/runs/x/store")));
        }
        assert_counted(&sandbox, &line);
    }
}

#[test]
fn rule_6_2_a_job_killed_in_mid_commit_ends_right_without_its_store() {
    let gone: fn(PathBuf) = |store| drop(fs::remove_dir_all(store));
    let damaged: fn(PathBuf) = |store| drop(fs::write(store.join("FORMAT"), "x"));
    for (step, harm) in [("manifest", gone), ("part-00000.csv", gone), ("manifest", damaged)] {
        let (sandbox, line) = word_count("sled");
        let running = sandbox.start(&format!("{line} --quiet"));
        sandbox.wait_for_commit("counts", step);
        running.kill();
        harm(sandbox.path(".regrow/runs/x/store"));
        assert_counted(&sandbox, &line);
    }
}
