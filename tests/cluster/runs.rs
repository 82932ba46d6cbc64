//! A job id that a `run` of one process and a cluster of the same data directory both could take.

use crate::{
    roles::{DATA, leader, task_managers},
    sandbox::{Sandbox, assert_finished_stays_finished, count},
};

const JOB: &str = "stages --stage 8x200ms --stage 1x0s --ledger ledger --job-id J";

#[test]
fn a_run_does_not_begin_the_interrupted_job_of_a_cluster() {
    let sandbox = Sandbox::new();
    let first = leader(&sandbox, "");
    let workers = task_managers(&sandbox, 1, "");
    sandbox.fine(&format!("submit {JOB} --detached {DATA}"));
    sandbox.wait_for_starts("ledger", 0, 5);
    let led = sandbox.regrow(&format!("run {JOB} {DATA}"));
    assert_eq!(led.code, Some(2), "{}", led.err);
    assert!(led.err.contains("a JobManager leads the cluster"), "{}", led.err);
    first.kill();
    drop(workers);
    let before = sandbox.ledger("ledger");
    let refused = sandbox.regrow(&format!("run {JOB} {DATA}"));
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    for said in ["job J belongs to the cluster", "regrow jobmanager --data-dir", "regrow wait J"] {
        assert!(refused.err.contains(said), "{said}: {}", refused.err);
    }
    assert_eq!(sandbox.ledger("ledger"), before, "nothing ran");
    assert!(sandbox.files("cluster/runs", "").is_empty(), "nothing is left of the refused run");
    let other = JOB.replace('J', "other").replace("ledger ledger", "ledger elsewhere");
    sandbox.fine(&format!("run {other} {DATA}"));
    let _second = leader(&sandbox, "");
    let _workers = task_managers(&sandbox, 1, "");
    sandbox.fine(&format!("wait J {DATA}"));
    let ledger = sandbox.ledger("ledger");
    assert_finished_stays_finished(&ledger);
    assert_eq!(count(&ledger, "end"), 9);
    // What has ended is known to both.
    sandbox.fine(&format!("run {JOB} {DATA}"));
    assert_eq!(sandbox.ledger("ledger"), ledger);
}

#[test]
fn a_cluster_does_not_begin_the_interrupted_job_of_a_run() {
    let sandbox = Sandbox::new();
    let run = sandbox.start(&format!("run {JOB} --slots 2 {DATA}"));
    sandbox.wait_for_starts("ledger", 0, 5);
    let _leader = leader(&sandbox, "");
    let _workers = task_managers(&sandbox, 1, "");
    let running = sandbox.regrow(&format!("submit {JOB} {DATA}"));
    assert_eq!(running.code, Some(2), "{}", running.err);
    assert!(running.err.contains("job J belongs to a `regrow run`"), "{}", running.err);
    run.kill();
    let refused = sandbox.regrow(&format!("submit {JOB} {DATA}"));
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("regrow run --resume --job-id J"), "{}", refused.err);
    sandbox.fine(&format!("run --resume --job-id J {DATA}"));
    let ledger = sandbox.ledger("ledger");
    assert_finished_stays_finished(&ledger);
    // Its result is known to both.
    sandbox.fine(&format!("submit {JOB} {DATA}"));
    assert_eq!(sandbox.ledger("ledger"), ledger);
}
