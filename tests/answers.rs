//! What the commands say of jobs that run, were interrupted, or ended; and that it can be parsed.

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

use interrupted::Interrupted;
use sandbox::Sandbox;
use serde_json::Value;

/// The commands that look at job `x`, and whether they need its store.
const LOOKS: [(&str, bool); 4] = [
    ("recovery x", false),
    ("events x", true),
    ("store verify --data-dir .regrow x", true),
    ("store dump --data-dir .regrow x", true),
];

/// Checks the names of the fields of an object.
fn assert_fields(object: &Value, names: &[&str]) {
    let found: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(found, names, "{object}");
}

/// Checks lines of `events` and `store dump`, and that they are whole.
fn assert_events(lines: &[Value]) {
    assert_eq!(lines[0]["event"], "JobSubmitted");
    for (sequence, line) in lines.iter().enumerate() {
        assert_eq!(line["sequence"].as_u64(), Some(sequence as u64), "{line}");
        assert!(line["epoch"].is_u64() && line["event"].is_string(), "{line}");
    }
}

fn assert_recovery(lines: &[Value]) {
    assert!(!lines.is_empty());
    for line in lines {
        assert_fields(line, &["attempt", "epoch", "fate", "reason", "stage", "subtask"]);
        let fate = line["fate"].as_str().unwrap();
        assert!(["kept_log", "kept_file", "adopted", "rerun"].contains(&fate), "{line}");
        for number in ["epoch", "stage", "subtask"] {
            assert!(line[number].is_u64(), "{line}");
        }
        assert!(line["attempt"].is_u64() || line["attempt"].is_null(), "{line}");
    }
}

#[test]
fn of_a_running_job_the_process_that_has_the_store_is_named() {
    let sandbox = Sandbox::new();
    let mut running = sandbox.start(
        "run stages --stage 4x50ms --stage 1x1h --slots 1 --job-id x --ledger ledger \
         --kill-jobmaster-at 20%",
    );
    running.until("it recovered", |line| line.contains("recovered as epoch"));
    sandbox.wait_for_starts("ledger", 1, 1);
    assert_recovery(&sandbox.fine("recovery x --json").json_lines());
    for (look, needs_store) in LOOKS {
        let answer = sandbox.regrow(look);
        if needs_store {
            assert_eq!(answer.code, Some(1), "{look}: {answer:?}");
            let owner = format!("in use by process {}", running.id());
            assert!(answer.err.contains(&owner), "{look}: {}", answer.err);
        } else {
            assert_eq!(answer.code, Some(0), "{look}: {answer:?}");
        }
    }
    running.interrupt();
    assert_eq!(running.wait(), Some(3));
}

#[test]
fn of_a_job_whose_log_is_in_memory_no_older_events_are_shown() {
    let sandbox = Sandbox::new();
    let line = "--job-id x --ledger ledger -D job-event.store.type=memory --quiet";
    let failing = format!("run stages --stage 1x0s --panic stage=0,subtask=0,attempt=0 {line}");
    let failed = sandbox.regrow(&format!("{failing} -D restart-strategy.type=none"));
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert_events(&sandbox.fine("events x --json").json_lines());
    let running = sandbox.start(&format!("run stages --stage 1x1h {line}"));
    sandbox.wait_for_starts("ledger", 0, 2);
    let answer = sandbox.regrow("events x");
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.err.contains("in memory"), "{}", answer.err);
    running.kill();
}

#[test]
fn of_an_interrupted_job_all_is_told_without_changing_it() {
    for kind in ["sled", "file"] {
        let run = Interrupted::new(kind);
        let sandbox = &run.sandbox;
        for _ in 0..2 {
            assert!(sandbox.fine("recovery x").out.contains("no recovery"));
            let events = sandbox.fine("events x --json");
            assert_events(&events.json_lines());
            assert_eq!(sandbox.fine("store dump --data-dir .regrow x --json").out, events.out);
            let verified = sandbox.fine("store verify --data-dir .regrow x --json").json();
            assert_fields(&verified, &["batches", "bytes", "damage", "run_id"]);
            assert!(verified["damage"].is_null(), "{verified}");
        }
        run.resume();
        assert_recovery(&sandbox.fine("recovery x --json").json_lines());
    }
}

#[test]
fn of_an_ended_job_events_and_recoveries_stay_and_the_store_is_gone() {
    let sandbox = Sandbox::new();
    let answer = sandbox.fine(
        "run stages --stage 4x20ms --stage 1x0s --slots 1 --job-id x --json \
         --kill-jobmaster-at 50%",
    );
    let result = answer.json();
    let expected =
        ["accumulators", "duration_ms", "error", "job_id", "recoveries", "run_id", "state"];
    assert_fields(&result, &expected);
    assert_eq!((&result["job_id"], &result["error"]), (&"x".into(), &Value::Null));
    assert!(answer.err.starts_with("job x\n"), "{}", answer.err);
    assert_recovery(&sandbox.fine("recovery x --json").json_lines());
    let events = sandbox.fine("events x --json").json_lines();
    assert_events(&events);
    assert_eq!(events.last().unwrap()["event"], "JobTerminated");
    for (look, needs_store) in LOOKS {
        let code = if needs_store && look.starts_with("store") { 2 } else { 0 };
        assert_eq!(sandbox.regrow(look).code, Some(code), "{look}");
    }
    for unknown in ["events y", "recovery y"] {
        let answer = sandbox.regrow(unknown);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.err.contains("did you mean x?") || answer.err.contains("no job y"));
    }
}

#[test]
fn every_option_is_listed_as_json_with_key_default_and_meaning() {
    let options = Sandbox::new().fine("config --json").json_lines();
    assert!(options.len() > 15);
    for option in options {
        for field in ["key", "default", "meaning", "unit"] {
            assert!(option[field].is_string(), "{field}: {option}");
        }
    }
}
