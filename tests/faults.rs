//! Tasks that fail, and partitions that are lost or damaged: what runs again, and what is said.

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

use interrupted::{CONSUMERS, Interrupted, cut_in_half, flip_a_byte};
use sandbox::{Sandbox, assert_finished_stays_finished, count};

const NO_DELAY: &str = "-D restart-strategy.fixed-delay.delay=1ms";

/// What a subtask did, in order.
fn story(sandbox: &Sandbox, subtask: (u32, u32)) -> Vec<String> {
    let ledger = sandbox.ledger("ledger");
    let lines = ledger.iter().filter(|line| line.subtask == Some(subtask));
    lines.map(|line| line.event.clone()).collect()
}

#[test]
fn a_task_that_panics_is_named_with_message_and_place() {
    let sandbox = Sandbox::new();
    let answer = sandbox.regrow(
        "run stages --stage 2x0s --ledger ledger --json -D restart-strategy.type=none \
         --panic stage=0,subtask=1,attempt=0",
    );
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let result = answer.json();
    assert_eq!(result["state"], "FAILED");
    let error = result["error"].as_str().unwrap();
    for part in ["0/1", "stage-0", "panicked as planned", "task.rs:"] {
        assert!(error.contains(part), "{part} is missing: {error}");
    }
    assert!(answer.err.contains(error), "{}", answer.err);
    assert_eq!(story(&sandbox, (0, 1)), ["start", "failed"]);
    sandbox.assert_nothing_left();
}

#[test]
fn a_task_may_fail_as_often_as_it_is_restarted() {
    let faults = |count: u32| {
        let each = (0..count).map(|attempt| format!("--fail stage=0,subtask=0,attempt={attempt}"));
        each.collect::<Vec<_>>().join(" ")
    };
    let run = format!(
        "run stages --stage 2x0s --stage 1x0s --bytes 1kb --ledger ledger --json {NO_DELAY} \
         -D restart-strategy.fixed-delay.attempts=2"
    );
    let sandbox = Sandbox::new();
    let fine = sandbox.fine(&format!("{run} {}", faults(2)));
    assert_eq!(fine.json()["recoveries"], 0);
    let twice = ["start", "failed", "start", "failed", "start", "end"];
    assert_eq!(story(&sandbox, (0, 0)), twice);
    assert_eq!(count(&sandbox.ledger("ledger"), "end"), 3);

    let sandbox = Sandbox::new();
    let answer = sandbox.regrow(&format!("{run} {}", faults(3)));
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let error = answer.json()["error"].as_str().unwrap().to_owned();
    for part in ["0/0", "failed 3 times", "failed as planned: stage=0,subtask=0,attempt=2"] {
        assert!(error.contains(part), "{part} is missing: {error}");
    }
    assert_eq!(story(&sandbox, (1, 0)), [""; 0]);
    sandbox.assert_nothing_left();
}

#[test]
fn failures_are_still_charged_after_the_master_was_killed() {
    let sandbox = Sandbox::new();
    let answer = sandbox.regrow(&format!(
        "run stages --stage 6x40ms --slots 1 --ledger ledger --json {NO_DELAY} \
         -D restart-strategy.fixed-delay.attempts=1 --kill-jobmaster-at 50% \
         --fail stage=0,subtask=0,attempt=0 --fail stage=0,subtask=5,attempt=0 \
         --fail stage=0,subtask=5,attempt=1 --fail stage=0,subtask=5,attempt=2"
    ));
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let result = answer.json();
    assert_eq!((&result["state"], &result["recoveries"]), (&"FAILED".into(), &1.into()));
    assert!(result["error"].as_str().unwrap().contains("0/5"), "{result}");
    sandbox.assert_nothing_left();
}

#[test]
fn rule_5_8_of_a_lost_partition_only_the_producer_runs_again() {
    let run = Interrupted::new("file");
    fs::remove_file(run.partition(2)).unwrap();
    run.resume();
    let [first, second] = CONSUMERS;
    assert_eq!(run.ran_again(), [(0, 2), first, second]);
    assert!(run.recovery().contains("its output is needed and was reported by nobody"));
}

#[test]
fn a_truncated_partition_is_a_lost_one() {
    let run = Interrupted::new("file");
    cut_in_half(&run.partition(1));
    run.resume();
    let [first, second] = CONSUMERS;
    assert_eq!(run.ran_again(), [(0, 1), first, second]);
    assert!(run.recovery().contains("its output is needed and was reported by nobody"));
}

#[test]
fn a_flipped_bit_in_a_partition_is_named_and_its_producer_runs_again() {
    let run = Interrupted::new("file");
    let partition = run.partition(2);
    flip_a_byte(&partition);
    run.resume();
    let mut ran = run.ran_again();
    ran.dedup();
    let [first, second] = CONSUMERS;
    assert_eq!(ran, [(0, 2), first, second]);
    let events = run.sandbox.fine("events x").out;
    let name = partition.file_name().unwrap().to_str().unwrap();
    let told = events.lines().any(|line| line.contains("PartitionLost") && line.contains(name));
    assert!(told, "{events}");
}

#[test]
fn a_partition_that_goes_bad_in_a_life_costs_its_producer_and_its_readers_only() {
    for harm in [|path: &std::path::Path| fs::remove_file(path).unwrap(), flip_a_byte] {
        let sandbox = Sandbox::new();
        let running = sandbox.start(
            "run stages --stage 4x0s --stage 3x300ms --bytes 100kb --slots 1 --ledger ledger \
             --job-id x -D restart-strategy.type=none",
        );
        sandbox.wait_for_starts("ledger", 1, 1);
        harm(&sandbox.file(".regrow/runs/x/shuffle", "/0-2-"));
        assert_eq!(running.wait(), Some(0));
        let ledger = sandbox.ledger("ledger");
        for subtask in [0, 1, 3] {
            assert_eq!(story(&sandbox, (0, subtask)), ["start", "end"], "{ledger:#?}");
        }
        assert_eq!(story(&sandbox, (0, 2)), ["start", "end", "start", "end"], "{ledger:#?}");
        assert!(count(&ledger, "failed") >= 1, "{ledger:#?}");
        sandbox.assert_nothing_left();
    }
}

#[test]
fn all_partitions_lost_is_the_first_stage_again() {
    let run = Interrupted::new("sled");
    for file in run.sandbox.files(".regrow/runs/x/shuffle", ".partition") {
        fs::remove_file(file).unwrap();
    }
    run.resume();
    let expected: Vec<(u32, u32)> = (0..4).map(|subtask| (0, subtask)).chain(CONSUMERS).collect();
    assert_eq!(run.ran_again(), expected);
}

#[test]
fn another_process_that_has_the_run_is_named() {
    let sandbox = Sandbox::new();
    let line = "run stages --stage 1x1h --job-id x --ledger ledger --quiet";
    let running = sandbox.start(line);
    sandbox.wait_for_starts("ledger", 0, 1);
    let refused = sandbox.regrow(line);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let owner = format!("in use by process {}; wait until", running.id());
    assert!(refused.err.contains(&owner), "{}", refused.err);
    running.interrupt();
    assert_eq!(running.wait(), Some(3));
    assert_eq!(story(&sandbox, (0, 0)), ["start", "cancelled"]);
    sandbox.assert_nothing_left();
}

#[test]
fn every_kind_of_store_survives_the_master_and_all_but_memory_the_process() {
    for kind in ["sled", "file", "memory"] {
        let sandbox = Sandbox::new();
        let answer = sandbox.fine(&format!(
            "run stages --stage 6x20ms --stage 2x0s --bytes 10kb --slots 2 --ledger ledger --json \
             --kill-jobmaster-at 50% -D job-event.store.type={kind}"
        ));
        assert_eq!(answer.json()["recoveries"], 1);
        assert_finished_stays_finished(&sandbox.ledger("ledger"));
        sandbox.assert_nothing_left();

        let run = Interrupted::new(kind);
        if kind == "memory" {
            let nothing = run.sandbox.regrow("run --resume");
            assert_eq!(nothing.code, Some(2), "{nothing:?}");
        } else {
            run.resume();
            assert_eq!(run.ran_again(), CONSUMERS);
        }
    }
}

#[test]
fn without_recovery_a_killed_job_begins_again_and_says_nothing_of_a_recovery() {
    let sandbox = Sandbox::new();
    let answer = sandbox.fine(
        "run stages --stage 4x40ms --stage 1x0s --slots 1 --ledger ledger --json --job-id x \
         --kill-jobmaster-at 50% -D execution.batch.job-recovery.enabled=false",
    );
    assert_eq!(answer.json()["recoveries"], 0);
    let first = story(&sandbox, (0, 0));
    assert_eq!(first, ["start", "end", "start", "end"]);
    assert!(sandbox.fine("recovery x").out.contains("no recovery"));
    sandbox.assert_nothing_left();
}
