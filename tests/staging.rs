//! What runs that nobody goes on with staged in their output directories.

#[expect(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a helper of tests, which share it"
)]
#[path = "support/sandbox.rs"]
mod sandbox;

use std::fs;

use sandbox::Sandbox;

/// A word count into `counts`, without an id.
const LINE: &str = "run wordcount --input text --output counts --slots 2 --ledger ledger \
     -D execution.batch.adaptive.auto-parallelism.default-source-parallelism=24 \
     -D execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task=2kb";

const IN_MEMORY: &str = "-D job-event.store.type=memory";

fn with_text() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.fine("generate text --bytes 1mb --output text");
    sandbox
}

/// Runs `line` and kills it when its first tasks have started: it has made its hidden directory.
fn killed(sandbox: &Sandbox, line: &str) {
    let running = sandbox.start(&format!("{line} --quiet"));
    sandbox.wait_for_starts("ledger", 0, 2);
    running.kill();
    assert_eq!(hidden(sandbox).len(), 1);
}

/// The hidden directories of the output, each by the file that names its owner.
fn hidden(sandbox: &Sandbox) -> Vec<std::path::PathBuf> {
    sandbox.files("counts", "/owner")
}

fn assert_counted(sandbox: &Sandbox, line: &str) {
    assert_eq!(sandbox.fine(&format!("{line} --json")).json()["state"], "FINISHED");
    assert_eq!(sandbox.output("counts"), sandbox.counted("text"));
    sandbox.assert_nothing_left();
}

#[test]
fn p5_what_a_killed_run_in_memory_staged_is_removed_by_the_next_run() {
    for (first, second) in [("--job-id x", "--job-id x"), ("--job-id x", "--job-id y"), ("", "")] {
        let sandbox = with_text();
        killed(&sandbox, &format!("{LINE} {IN_MEMORY} {first}"));
        assert_counted(&sandbox, &format!("{LINE} {second}"));
    }
}

#[test]
fn rule_6_2_a_run_in_memory_that_was_publishing_is_published_to_its_end() {
    for step in ["manifest", "part-00000.csv"] {
        let sandbox = with_text();
        let line = format!("{LINE} {IN_MEMORY} --job-id x");
        let running = sandbox.start(&format!("{line} --quiet"));
        sandbox.wait_for_commit("counts", step);
        running.kill();
        let was_publishing = sandbox.files("counts", "/manifest").len() == 1;
        let answer = sandbox.fine(&line);
        let told = "were in memory: the output, which was being published, is published to its end";
        assert_eq!(answer.err.contains(told), was_publishing, "{}", answer.err);
        assert_eq!(sandbox.output("counts"), sandbox.counted("text"));
        sandbox.assert_nothing_left();
    }
}

#[test]
fn a_run_of_which_only_its_file_is_left_cleans_its_own_staging_directory() {
    let sandbox = with_text();
    let line = format!("{LINE} --job-id x");
    killed(&sandbox, &line);
    for part in ["store", "shuffle"] {
        fs::remove_dir_all(sandbox.path(".regrow/runs/x").join(part)).unwrap();
    }
    let other = sandbox.regrow(&format!("{LINE} --job-id y"));
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.err.contains("is in use by job x"), "{}", other.err);
    assert_counted(&sandbox, &line);
}

#[test]
fn p5_what_a_run_staged_whose_data_directory_is_gone_stays_and_is_named() {
    let sandbox = with_text();
    killed(&sandbox, &format!("{LINE} --job-id x"));
    fs::remove_dir_all(sandbox.path(".regrow")).unwrap();
    let answer = sandbox.regrow(&format!("{LINE} --job-id x"));
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let hidden = hidden(&sandbox).pop().unwrap();
    let hidden = hidden.parent().unwrap();
    let advice = format!("if nobody can resume it any more, remove {}", hidden.display());
    assert!(answer.err.contains(&advice), "{}", answer.err);
    fs::remove_dir_all(hidden).unwrap();
    assert_counted(&sandbox, &format!("{LINE} --job-id x"));
}

/// Runs the job `y` with `line`, which must be refused before anything of it is there, and gives
/// what it said.
fn refused(sandbox: &Sandbox, line: &str) -> String {
    let answer = sandbox.regrow(&format!("{line} --job-id y"));
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(!sandbox.path(".regrow/runs/y").exists());
    assert_eq!(hidden(sandbox).len(), 1);
    answer.err
}

#[test]
fn rule_6_2_what_a_live_run_writes_is_not_overwritten() {
    let sandbox = with_text();
    sandbox.fine("generate records --size 1mb --output records");
    let running = sandbox.start(&format!("{LINE} --job-id x --overwrite --quiet"));
    sandbox.wait_for_starts("ledger", 0, 2);
    // So that it is in its midst, however long the others take.
    running.signal("STOP");
    let sort = "run sort --input records --output counts";
    for line in [LINE, sort, &format!("{LINE} --overwrite"), &format!("{sort} --overwrite")] {
        let said = refused(&sandbox, line);
        let owner = format!("in use by job x, which process {} runs", running.id());
        assert!(said.contains(&owner), "{said}");
    }
    running.signal("CONT");
    assert_eq!(running.wait(), Some(0));
    assert_eq!(sandbox.output("counts"), sandbox.counted("text"));
    sandbox.assert_nothing_left();
    sandbox.fine(&format!("{sort} --overwrite"));
    sandbox.fine("verify sorted counts");
}

#[test]
fn rule_6_2_what_a_killed_run_staged_is_not_overwritten_while_it_can_go_on() {
    let sandbox = with_text();
    let line = format!("{LINE} --overwrite");
    killed(&sandbox, &format!("{line} --job-id x"));
    let said = refused(&sandbox, &line);
    assert!(said.contains("resume it with --resume --job-id x"), "{said}");
    let directory = sandbox.path(".regrow/runs/x");
    let hidden = hidden(&sandbox).pop().unwrap();
    let hidden = hidden.parent().unwrap();
    let advice = format!("remove {} and {}", directory.display(), hidden.display());
    assert!(said.contains(&advice), "{said}");
    assert_counted(&sandbox, "run --resume --job-id x");
}

#[test]
fn a_killed_run_that_is_given_up_is_overwritten() {
    for with_staging in [true, false] {
        let sandbox = with_text();
        let line = format!("{LINE} --overwrite");
        killed(&sandbox, &format!("{line} --job-id x"));
        let hidden = hidden(&sandbox).pop().unwrap();
        let hidden = hidden.parent().unwrap();
        fs::remove_dir_all(sandbox.path(".regrow/runs/x")).unwrap();
        if with_staging {
            fs::remove_dir_all(hidden).unwrap();
        }
        sandbox.fine(&format!("{line} --job-id y"));
        // Nobody knows whose it is any more: it is passed by, and stays.
        assert_eq!(hidden.exists(), !with_staging);
        if !with_staging {
            fs::remove_dir_all(hidden).unwrap();
        }
        assert_eq!(sandbox.output("counts"), sandbox.counted("text"));
    }
}

#[test]
fn rule_6_2_a_manifest_of_a_run_of_elsewhere_is_never_overwritten() {
    let sandbox = with_text();
    killed(&sandbox, &format!("{LINE} --job-id x"));
    fs::remove_dir_all(sandbox.path(".regrow")).unwrap();
    let hidden = hidden(&sandbox).pop().unwrap();
    let hidden = hidden.parent().unwrap();
    fs::write(hidden.join("manifest"), "").unwrap();
    let said = refused(&sandbox, &format!("{LINE} --overwrite"));
    assert!(said.contains("job x") && said.contains("is publishing"), "{said}");
    assert!(said.contains(&format!("remove {}", hidden.display())), "{said}");
}
