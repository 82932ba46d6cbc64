//! The job `stages`, as a user runs it: failures, kills, cancel, and what is told about them.

#[expect(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a helper of tests, which share it"
)]
#[path = "support/sandbox.rs"]
mod sandbox;

use serde_json::Value;

use sandbox::{Sandbox, assert_finished_stays_finished, count};

#[test]
fn every_task_of_every_stage_runs_once() {
    let sandbox = Sandbox::new();
    sandbox.fine("run stages --stage 6x10ms --stage 3x10ms --stage 1x0s --slots 2 --ledger ledger");
    let ledger = sandbox.ledger("ledger");
    assert_eq!((count(&ledger, "start"), count(&ledger, "end")), (10, 10));
}

#[test]
fn payload_reaches_the_next_stage_whole_through_kills() {
    for (name, kind) in [("all", ""), ("pointwise", "--pointwise")] {
        let sandbox = Sandbox::new();
        let answer = sandbox.fine(&format!(
            "run stages --stage 8x20ms --stage 8x20ms --stage 2x0s --bytes 1mb {kind} --slots 2 \
             --ledger {name} --json --kill-jobmaster-at 30% --kill-jobmaster-at 60%:panic"
        ));
        assert_eq!(answer.json()["recoveries"], 2);
        assert_finished_stays_finished(&sandbox.ledger(name));
    }
}

#[test]
fn splits_are_handed_out_once_through_kills() {
    let sandbox = Sandbox::new();
    sandbox.fine(
        "run stages --stage 8x100ms --splits 40 --stage 1x0s --slots 2 --ledger ledger \
         --kill-jobmaster-at 20% --kill-jobmaster-at 60% --job-id splits",
    );
    assert_finished_stays_finished(&sandbox.ledger("ledger"));
    let events = sandbox.fine("events splits --json").json_lines();
    let mut read: Vec<u64> = events
        .iter()
        .flat_map(finish_records)
        .flat_map(|record| record["splits"].as_array().unwrap())
        .map(|split| split.as_u64().unwrap())
        .collect();
    read.sort_unstable();
    assert_eq!(read, (0..40).collect::<Vec<u64>>());
}

/// The finishes that an event counts: its own, or those that a recovery found.
fn finish_records(event: &Value) -> Vec<&Value> {
    if event["event"] == "ExecutionVertexFinished" {
        return vec![&event["record"]];
    }
    let found = event["found"].as_array().map(Vec::as_slice).unwrap_or_default();
    found.iter().map(|found| &found[2]).collect()
}

#[test]
fn a_task_that_fails_is_tried_again() {
    let sandbox = Sandbox::new();
    sandbox.fine(
        "run stages --stage 3x0s --stage 1x0s --ledger ledger \
         -D restart-strategy.fixed-delay.delay=1ms \
         --fail stage=0,subtask=1,attempt=0 --panic stage=0,subtask=1,attempt=1",
    );
    let ledger = sandbox.ledger("ledger");
    assert_eq!((count(&ledger, "failed"), count(&ledger, "end")), (2, 4));
}

#[test]
fn a_job_whose_task_fails_too_often_fails_with_its_cause() {
    let sandbox = Sandbox::new();
    let answer = sandbox.regrow(
        "run stages --stage 2x0s --json -D restart-strategy.fixed-delay.attempts=1 \
         -D restart-strategy.fixed-delay.delay=1ms \
         --fail stage=0,subtask=1,attempt=0 --fail stage=0,subtask=1,attempt=1",
    );
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let result = answer.json();
    assert_eq!(result["state"], "FAILED");
    assert!(result["error"].as_str().unwrap().contains("failed as planned"), "{result}");
}

#[test]
fn ctrl_c_cancels_the_job() {
    let sandbox = Sandbox::new();
    let mut running = sandbox.start("run stages --stage 2x1h --slots 2 --ledger ledger");
    running.until("a task runs", |line| line.contains("running"));
    running.interrupt();
    assert_eq!(running.wait(), Some(3));
    assert_eq!(count(&sandbox.ledger("ledger"), "cancelled"), 2);
}

#[test]
fn a_run_that_was_killed_whole_is_named_and_resumes() {
    let sandbox = Sandbox::new();
    let line = "run stages --stage 4x0s --stage 2x2s --slots 1 --ledger ledger --job-id whole";
    let mut running = sandbox.start(line);
    running.until("stage 0 is complete", |line| line.contains("stage-0 4/4"));
    running.kill();
    assert!(sandbox.fine("recovery whole").out.contains("no recovery"));
    assert_eq!(sandbox.fine("events whole --json").json_lines()[0]["event"], "JobSubmitted");
    sandbox.fine("store verify --data-dir .regrow whole");
    let other = sandbox.fine("run stages --stage 1x0s --job-id other");
    assert!(other.err.contains("run --resume --job-id whole"), "{}", other.err);
    let answer = sandbox.fine("run --resume --json --slots 2");
    assert_eq!(answer.json()["state"], "FINISHED");
    assert_finished_stays_finished(&sandbox.ledger("ledger"));
    let nothing = sandbox.regrow("run --resume");
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
}

#[test]
fn a_recovery_is_told_task_by_task() {
    let sandbox = Sandbox::new();
    let answer = sandbox.fine(
        "run stages --stage 6x50ms --stage 1x0s --slots 2 --job-id told --kill-jobmaster-at 50%",
    );
    assert!(answer.err.contains("kept from the log"), "{}", answer.err);
    let lines = sandbox.fine("recovery told --json").json_lines();
    let fates: Vec<&str> = lines.iter().map(|line| line["fate"].as_str().unwrap()).collect();
    assert!(fates.iter().any(|fate| fate.starts_with("kept_")), "{fates:?}");
    assert!(lines.iter().all(|line| line["epoch"].is_u64() && line["reason"].is_string()));
    assert!(sandbox.fine("recovery told").out.contains("kept"));
    let events = sandbox.fine("events told --json").json_lines();
    assert_eq!(events[0]["event"], "JobSubmitted");
    assert!(events.iter().any(|event| event["event"] == "RecoveryDecided"));
}

#[test]
fn the_demo_shows_equal_counts() {
    let answer = Sandbox::new().fine("demo --bytes 8mb --json");
    let result = answer.json();
    assert_eq!(result["equal"], true);
    assert_eq!(result["recoveries"], 1);
    assert!(result["kept"].as_u64().unwrap() > 0, "{result}");
}
