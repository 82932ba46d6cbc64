//! A cluster whose processes are told to stop: what they have goes to others, and nothing is lost.

use crate::{
    roles::{DATA, leader, standby, takes_over, task_manager, task_managers, wait_until_clean},
    sandbox::{Sandbox, assert_finished_stays_finished, count},
};

#[test]
fn fault_26_a_leader_that_is_told_to_stop_hands_over_and_nothing_runs_again() {
    let sandbox = Sandbox::new();
    let first = leader(&sandbox, "");
    let mut second = standby(&sandbox, "");
    let _workers = task_managers(&sandbox, 2, "");
    let submit = sandbox.start(&format!(
        "submit stages --stage 8x200ms --stage 4x200ms --stage 1x0s --ledger ledger {DATA}"
    ));
    sandbox.wait_for_starts("ledger", 0, 6);
    first.signal("TERM");
    assert_eq!(first.wait(), Some(0));
    takes_over(&mut second);
    sandbox.wait_for_starts("ledger", 1, 2);
    second.signal("INT");
    assert_eq!(second.wait(), Some(0));
    // A supervisor starts it again at once.
    let _third = leader(&sandbox, "");
    assert_eq!(submit.wait(), Some(0));
    let ledger = sandbox.ledger("ledger");
    assert_finished_stays_finished(&ledger);
    assert_eq!(count(&ledger, "end"), 13);
    wait_until_clean(&sandbox);
}

#[test]
fn a_standby_that_is_told_to_stop_leaves_the_leader_alone() {
    let sandbox = Sandbox::new();
    let _first = leader(&sandbox, "");
    let second = standby(&sandbox, "");
    second.signal("TERM");
    assert_eq!(second.wait(), Some(0));
    sandbox.fine(&format!("list {DATA}"));
}

#[test]
fn a_worker_that_is_told_to_stop_ends_its_tasks_and_gives_back_what_takes_too_long() {
    let sandbox = Sandbox::new();
    let _leader = leader(&sandbox, "");
    let patient = task_manager(&sandbox, "-D taskmanager.drain-timeout=1min");
    let submit = sandbox
        .start(&format!("submit stages --stage 6x200ms --stage 2x10s --ledger ledger {DATA}"));
    sandbox.wait_for_starts("ledger", 0, 2);
    patient.signal("TERM");
    assert_eq!(patient.wait(), Some(0));
    assert_eq!(count(&sandbox.ledger("ledger"), "end"), 2, "what ran has ended");

    let hasty = task_manager(&sandbox, "-D taskmanager.drain-timeout=0s");
    sandbox.wait_for_starts("ledger", 1, 2);
    hasty.signal("TERM");
    assert_eq!(hasty.wait(), Some(0));
    // All that the two left is there for who follows them, and nobody waited for a grace.
    let mut last = task_manager(&sandbox, "-D taskmanager.drain-timeout=1min");
    sandbox.wait_for_starts("ledger", 1, 4);
    let ledger = sandbox.ledger("ledger");
    assert_eq!((count(&ledger, "start"), count(&ledger, "end")), (10, 6));
    while !last.has_ended() {
        last.signal("TERM");
    }
    assert_eq!(last.wait(), None, "by the signal");
    submit.kill();
}
