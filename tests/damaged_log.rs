//! Event logs that were damaged between two lives: the result is right, and the damage is told.

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

use std::{fs, path::PathBuf};

use interrupted::{CONSUMERS, Interrupted, cut_in_half, flip_a_byte};
use sandbox::assert_finished_stays_finished;

fn segment(run: &Interrupted) -> PathBuf {
    run.sandbox.file(".regrow/runs/x/store", "segment-")
}

fn database(run: &Interrupted) -> PathBuf {
    run.sandbox.file(".regrow/runs/x/store", "/db")
}

/// Damages the log of a run and resumes it: what finished stays finished, as finish records prove.
fn assert_resumed_with_damage_told(kind: &str, harm: impl Fn(&Interrupted)) {
    let run = Interrupted::new(kind);
    harm(&run);
    let verified = run.sandbox.regrow("store verify --data-dir .regrow x");
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.out.contains("DAMAGED at"), "{}", verified.out);
    let answer = run.resume();
    assert!(answer.err.contains("the log is damaged: "), "{}", answer.err);
    assert!(run.recovery().contains("the log is damaged: "), "{}", run.recovery());
    assert_eq!(run.ran_again(), CONSUMERS);
    assert_finished_stays_finished(&run.sandbox.ledger("ledger"));
}

#[test]
fn rule_5_12_a_flipped_byte_in_a_segment() {
    assert_resumed_with_damage_told("file", |run| flip_a_byte(&segment(run)));
}

#[test]
fn rule_5_12_a_segment_that_is_cut() {
    assert_resumed_with_damage_told("file", |run| cut_in_half(&segment(run)));
}

#[test]
fn rule_5_12_a_database_with_a_flipped_byte_or_cut_is_told_and_the_result_right() {
    for harm in [flip_a_byte, cut_in_half] {
        let run = Interrupted::new("sled");
        harm(&database(&run));
        let answer = run.resume();
        assert!(answer.err.contains("the log is damaged: "), "{}", answer.err);
        assert!(run.recovery().contains("the log is damaged: "), "{}", run.recovery());
    }
}

#[test]
fn rule_5_13_a_log_that_is_gone_is_told_and_finish_records_stand_in() {
    for harm in [|path: PathBuf| fs::remove_file(path), |path| fs::write(path, "")] {
        let run = Interrupted::new("file");
        harm(segment(&run)).unwrap();
        let answer = run.resume();
        assert!(answer.err.contains("the log is damaged: "), "{}", answer.err);
        assert!(run.recovery().contains("the log is damaged: "), "{}", run.recovery());
        assert_eq!(run.ran_again(), CONSUMERS);
    }
}
