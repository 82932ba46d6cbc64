//! Ctrl-C at any moment: one terminal state, nothing left, and a second one leaves at once.

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

use std::fs;

use interrupted::Interrupted;
use sandbox::{Running, Sandbox};

/// Sends Ctrl-C and expects that the job `x` is cancelled, for good, and nothing of it left.
fn assert_cancelled(sandbox: &Sandbox, running: Running) {
    running.interrupt();
    assert_eq!(running.wait(), Some(3));
    sandbox.assert_nothing_left();
    let events = sandbox.fine("events x").out;
    assert_eq!(events.matches("JobTerminated").count(), 1, "{events}");
    assert!(events.contains("JobTerminated: CANCELED\n"), "{events}");
    let nothing = sandbox.regrow("run --resume");
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
}

#[test]
fn a_job_is_cancelled_as_soon_as_it_is_named() {
    let sandbox = Sandbox::new();
    let mut running = sandbox.start("run stages --stage 2x1h --job-id x");
    running.until("the job is named", |line| line.contains("job x"));
    assert_cancelled(&sandbox, running);
}

#[test]
fn a_job_is_cancelled_in_a_later_stage() {
    let sandbox = Sandbox::new();
    let line = "run stages --stage 4x0s --stage 2x1h --bytes 10kb --job-id x --ledger ledger";
    let running = sandbox.start(line);
    sandbox.wait_for_starts("ledger", 1, 1);
    assert_cancelled(&sandbox, running);
}

#[test]
fn a_job_is_cancelled_while_a_task_waits_for_its_restart() {
    let sandbox = Sandbox::new();
    let mut running = sandbox.start(
        "run stages --stage 1x0s --job-id x --fail stage=0,subtask=0,attempt=0 \
         -D restart-strategy.fixed-delay.delay=1h",
    );
    running.until("a restart is awaited", |line| line.contains("waiting for restart"));
    assert_cancelled(&sandbox, running);
}

#[test]
fn rule_5_1_a_job_is_cancelled_while_its_recovery_waits_for_workers() {
    let run = Interrupted::new("sled");
    fs::remove_dir_all(run.sandbox.path(".regrow/runs/x/shuffle")).unwrap();
    let mut running = run.sandbox.start("run --resume");
    running.until("it reconciles", |line| {
        line.contains("RECONCILING") && line.contains("former workers")
    });
    assert_cancelled(&run.sandbox, running);
    assert_eq!(run.ran_again(), []);
}

#[test]
fn a_cancel_during_the_commit_publishes_all_or_nothing() {
    let sandbox = Sandbox::new();
    sandbox.fine("generate text --bytes 1mb --output text");
    let running = sandbox.start(
        "run wordcount --input text --output counts --job-id x \
         -D execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task=16kb",
    );
    sandbox.wait_until("the commit begins", |sandbox| {
        !sandbox.files("counts", "sink-").is_empty() || !sandbox.files("counts", "part-").is_empty()
    });
    running.interrupt();
    match running.wait() {
        Some(0) => assert_eq!(sandbox.output("counts"), sandbox.counted("text")),
        Some(3) => assert_eq!(sandbox.files("counts", ""), [""; 0].map(std::path::PathBuf::from)),
        other => panic!("it ended with {other:?}"),
    }
    sandbox.assert_nothing_left();
}

#[test]
fn a_second_ctrl_c_leaves_at_once_and_the_job_can_be_resumed() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path(".regrow")).unwrap();
    // The end of the job waits for the archive, which is no directory.
    fs::write(sandbox.path(".regrow/archive"), "").unwrap();
    let mut running = sandbox.start("run stages --stage 2x1h --job-id x --ledger ledger");
    sandbox.wait_for_starts("ledger", 0, 1);
    running.interrupt();
    running.until("the cancel is told", |line| line.contains("press Ctrl-C again"));
    running.interrupt();
    assert_eq!(running.wait(), Some(130));
    fs::remove_file(sandbox.path(".regrow/archive")).unwrap();
    // Whether the first one was recorded before the process left is a matter of luck.
    let mut resumed = sandbox.start("run --resume");
    resumed.until("the job is named", |line| line.contains("job x"));
    assert_cancelled(&sandbox, resumed);
}
