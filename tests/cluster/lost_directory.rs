//! A cluster whose data directory is taken away while somebody leads it.

use std::fs;

use crate::{
    roles::{DATA, address, leader, standby, takes_over},
    sandbox::{Running, Sandbox},
};

/// Checks that a leader ends by itself, and says what happened and what to do.
fn steps_down(mut leader: Running, what: &str) {
    leader.until("it says that it stopped", |line| line.contains("stopped leading"));
    let said = leader.said.join("\n");
    assert!(said.contains(what) && said.contains("start a JobManager"), "{said}");
    assert_eq!(leader.wait(), Some(1));
}

#[test]
fn fault_23_a_leader_whose_directory_is_moved_away_steps_down_and_its_jobs_go_on_there() {
    let sandbox = Sandbox::new();
    let first = leader(&sandbox, "");
    sandbox.fine(&format!("submit stages --stage 2x10s --job-id moved --detached {DATA}"));
    fs::rename(sandbox.path("cluster"), sandbox.path("elsewhere")).expect("it can be moved");
    steps_down(first, "leader.lock, which this process had locked, is gone");
    assert!(!sandbox.path("cluster").exists(), "nobody made it again");

    let there = "--data-dir elsewhere";
    let mut second = sandbox.start(&format!("jobmanager {there} -D jobmanager.rpc.port=0"));
    second.until("it leads", |line| line == "leading");
    let jobs = sandbox.fine(&format!("list --json {there}")).json_lines();
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert_eq!(jobs[0]["job_id"], "moved");
    sandbox.fine(&format!("cancel moved {there}"));
}

#[test]
fn fault_23_a_standby_leads_when_the_directory_that_was_moved_away_is_back() {
    let sandbox = Sandbox::new();
    let first = leader(&sandbox, "");
    let mut second = standby(&sandbox, "");
    sandbox.fine(&format!("submit stages --stage 2x10s --job-id back --detached {DATA}"));
    fs::rename(sandbox.path("cluster"), sandbox.path("elsewhere")).expect("it can be moved");
    steps_down(first, "leader.lock, which this process had locked, is gone");
    second.until("it waits", |line| line.contains("is there again: it was deleted or moved away"));
    fs::rename(sandbox.path("elsewhere"), sandbox.path("cluster")).expect("it can be moved back");
    takes_over(&mut second);
    let jobs = sandbox.fine(&format!("list --json {DATA}")).json_lines();
    assert_eq!((jobs.len(), &jobs[0]["job_id"]), (1, &"back".into()), "{jobs:?}");
    sandbox.fine(&format!("cancel back {DATA}"));
}

#[test]
fn fault_23_of_two_that_lead_after_a_deletion_the_first_promises_nothing_more() {
    let sandbox = Sandbox::new();
    let first = leader(&sandbox, "");
    sandbox.fine(&format!("submit stages --stage 2x10s --job-id lost --detached {DATA}"));
    let address = address(&first);
    fs::remove_dir_all(sandbox.path("cluster")).expect("it can be deleted");
    let _second = leader(&sandbox, "");
    let old = format!("-D jobmanager.rpc.addresses={address} -D client.leader-timeout=200ms");
    let submitted = sandbox
        .regrow(&format!("submit stages --stage 1x0s --job-id late --detached --data-dir x {old}"));
    // It was refused, or nobody led there any more.
    assert!([Some(2), Some(4)].contains(&submitted.code), "{submitted:?}");
    steps_down(first, "leader.lock is another one than this process had locked");
    let jobs = sandbox.fine(&format!("list --json {DATA}")).json_lines();
    assert!(jobs.is_empty(), "{jobs:?}");
}
