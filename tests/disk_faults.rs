//! Disks that are full or refuse to be written: what is said, and what is kept.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[expect(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a helper of tests, which share it"
)]
#[path = "support/sandbox.rs"]
mod sandbox;

use std::fs;

use sandbox::{Answer, Sandbox, count};

/// Makes a small disk at `disk`.
fn small_disk(size: &str) -> String {
    format!("mkdir disk && mount -t tmpfs -o size={size} none disk || exit 99;")
}

/// Runs the program on a small disk; the files that are left on it are listed in `left`.
fn on_a_small_disk(sandbox: &Sandbox, size: &str, line: &str) -> Option<Answer> {
    let disk = small_disk(size);
    sandbox.with_mounts(&format!("{disk} $0 {line}; code=$?; find disk -type f >left; exit $code"))
}

fn left(sandbox: &Sandbox) -> Vec<String> {
    let text = fs::read_to_string(sandbox.path("left")).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Checks that a job failed because the disk is full, with the file named.
fn assert_failed_for_want_of_space(answer: &Answer, file: &str) {
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let result = answer.json();
    assert_eq!(result["state"], "FAILED");
    let error = result["error"].as_str().unwrap();
    assert!(error.contains("No space left on device"), "{error}");
    assert!(error.contains(file), "{file} is not named: {error}");
}

#[test]
fn a_full_disk_of_the_shuffle_fails_the_job_with_the_file_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let line = "run stages --stage 4x0s --stage 1x0s --bytes 1mb --data-dir disk --json \
                -D restart-strategy.fixed-delay.delay=1ms";
    let Some(answer) = on_a_small_disk(&sandbox, "900k", line) else { return };
    assert_failed_for_want_of_space(&answer, "disk/runs/");
    let left = left(&sandbox);
    assert!(left.iter().all(|file| file.starts_with("disk/archive/")), "{left:?}");
}

#[test]
fn a_full_disk_of_the_output_fails_the_job_with_the_file_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    sandbox.fine("generate text --bytes 2mb --output text");
    let line = "run wordcount --input text --output disk/counts --json \
                -D restart-strategy.fixed-delay.delay=1ms";
    let Some(answer) = on_a_small_disk(&sandbox, "100k", line) else { return };
    assert_failed_for_want_of_space(&answer, "disk/counts/");
    assert_eq!(left(&sandbox), [""; 0]);
    sandbox.assert_nothing_left();
}

#[test]
fn rule_3_7_a_full_disk_of_the_store_keeps_the_job_which_resumes_when_there_is_room() {
    for kind in ["sled", "file"] {
        let sandbox = Sandbox::new();
        let disk = small_disk("4m");
        let Some(answer) = sandbox.with_mounts(&format!(
            "{disk} $0 run stages --stage 4x100ms --stage 1x100ms --slots 1 --job-id x \
             --data-dir disk --ledger ledger -D job-event.store.unavailable-timeout=500ms \
             -D job-event.store.type={kind} & \
             for i in $(seq 3000); do grep -q end ledger 2>/dev/null && break; sleep 0.01; done; \
             dd if=/dev/zero of=disk/filler bs=4k 2>/dev/null; \
             wait $!; echo first $? >&2; rm disk/filler; \
             $0 run --resume --data-dir disk --json"
        )) else {
            return;
        };
        assert!(answer.err.contains("first 1"), "{answer:?}");
        assert!(answer.err.contains("the job can be resumed"), "{}", answer.err);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert_eq!(answer.json()["state"], "FINISHED");
        assert!(count(&sandbox.ledger("ledger"), "end") >= 5);
    }
}

#[test]
fn a_store_without_room_for_a_job_refuses_it_and_promises_nothing() {
    let sandbox = Sandbox::new();
    let line = "run stages --stage 1x0s --data-dir disk -D job-event.store.type=file \
                -D job-event.store.unavailable-timeout=100ms";
    let Some(answer) = on_a_small_disk(&sandbox, "16k", line) else { return };
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.err.contains("No space left on device"), "{}", answer.err);
    assert!(!answer.err.contains("resumed"), "{}", answer.err);
}

#[test]
fn a_read_only_data_directory_is_named_before_the_job_is_accepted() {
    let sandbox = Sandbox::new();
    let Some(answer) = sandbox.with_mounts(
        "mkdir disk && mount --bind disk disk && mount -o remount,bind,ro disk || exit 99; \
         $0 run stages --stage 1x0s --data-dir disk",
    ) else {
        return;
    };
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.err.contains("disk/runs"), "{}", answer.err);
    assert!(answer.err.contains("Read-only file system"), "{}", answer.err);
}

#[test]
fn a_file_in_place_of_a_directory_is_named_before_the_job_is_accepted() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("file"), "here\n").unwrap();
    for (line, named) in [
        ("run stages --stage 1x0s --data-dir file", "directory file is"),
        ("run stages --stage 1x0s --data-dir file/below", "directory file/below is"),
        ("run wordcount --input file --output file", "/file is a file"),
        ("run wordcount --input file --output file/below", "/file is a file"),
    ] {
        let answer = sandbox.regrow(line);
        assert_eq!(answer.code, Some(2), "{line}: {answer:?}");
        assert!(answer.err.contains(named), "{line}: {}", answer.err);
    }
    assert_eq!(fs::read_to_string(sandbox.path("file")).unwrap(), "here\n");
}

#[test]
fn an_archive_that_cannot_be_written_keeps_the_job_until_it_can() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path(".regrow")).unwrap();
    fs::write(sandbox.path(".regrow/archive"), "").unwrap();
    let line = "run stages --stage 2x0s --job-id x --ledger ledger \
                -D job-event.store.unavailable-timeout=100ms";
    let answer = sandbox.regrow(line);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.err.contains(".regrow/archive"), "{}", answer.err);
    assert!(answer.err.contains("the job can be resumed"), "{}", answer.err);
    fs::remove_file(sandbox.path(".regrow/archive")).unwrap();
    assert_eq!(sandbox.fine("run --resume --json").json()["state"], "FINISHED");
    assert_eq!(count(&sandbox.ledger("ledger"), "start"), 2);
    sandbox.assert_nothing_left();
}
