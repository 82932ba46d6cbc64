//! A cluster of processes, as its users run it: roles killed in any order, clients that follow.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use crate::{
    roles::{DATA, address, leader, standby, takes_over, task_managers},
    sandbox::{Sandbox, assert_finished_stays_finished, count},
};

#[test]
fn a_job_survives_its_leader_and_the_standby_that_took_over() {
    let sandbox = Sandbox::new();
    let first = leader(&sandbox, "");
    let mut second = standby(&sandbox, "");
    let _workers = task_managers(&sandbox, 2, "");
    let submit = sandbox.start(&format!(
        "submit stages --stage 12x300ms --stage 8x300ms --stage 1x0s --ledger ledger --job-id J {DATA}"
    ));
    sandbox.wait_for_starts("ledger", 0, 8);
    first.kill();
    takes_over(&mut second);
    sandbox.wait_for_starts("ledger", 1, 2);
    second.kill();
    let _third = leader(&sandbox, "");
    assert_eq!(submit.wait(), Some(0));
    let ledger = sandbox.ledger("ledger");
    assert_finished_stays_finished(&ledger);
    assert_eq!(count(&ledger, "end"), 21);
    let job = sandbox.fine(&format!("status J --json {DATA}")).json();
    assert_eq!((&job["state"], &job["recoveries"]), (&"FINISHED".into(), &2.into()));
    sandbox.wait_until("all partitions are gone", |sandbox| {
        sandbox.files("cluster/shuffle", "part").is_empty()
    });
}

#[test]
fn a_leader_that_restarts_elsewhere_is_found_by_workers_and_clients() {
    let sandbox = Sandbox::new();
    let first = leader(&sandbox, "");
    let _workers = task_managers(&sandbox, 1, "");
    sandbox.fine(&format!(
        "submit stages --stage 6x300ms --stage 1x0s --ledger ledger --job-id J --detached {DATA}"
    ));
    sandbox.wait_for_starts("ledger", 0, 3);
    let wait = sandbox.start(&format!("wait J {DATA}"));
    first.kill();
    let _second = leader(&sandbox, "");
    assert_eq!(wait.wait(), Some(0));
    assert_finished_stays_finished(&sandbox.ledger("ledger"));
}

#[test]
fn a_worker_that_dies_takes_only_its_own_work_along() {
    let sandbox = Sandbox::new();
    let _leader = leader(&sandbox, "");
    let mut workers = task_managers(&sandbox, 2, "");
    let submit = sandbox.start(&format!(
        "submit stages --stage 8x300ms --stage 4x100ms --bytes 10kb --ledger ledger {DATA} \
         -D taskmanager.reconnect-grace=100ms"
    ));
    sandbox.wait_for_starts("ledger", 0, 5);
    workers.pop().expect("there are two").kill();
    assert_eq!(submit.wait(), Some(0));
}

#[test]
fn fault_21_a_job_is_cancelled_joined_and_listed_by_its_name() {
    let sandbox = Sandbox::new();
    let _leader = leader(&sandbox, "");
    let job = format!("submit stages --stage 2x60s --job-id long --detached {DATA}");
    sandbox.fine(&job);
    sandbox.fine(&job);
    let other = sandbox.regrow(&format!("submit stages --stage 3x1s --job-id long {DATA}"));
    assert_eq!(other.code, Some(2), "{}", other.err);
    assert!(other.err.contains("job long exists with other arguments"), "{}", other.err);
    let named = other.err.contains("{tasks: 2,") && other.err.contains("{tasks: 3,");
    assert!(named && !other.err.contains("overwrite"), "what differs is named: {}", other.err);
    assert!(!other.err.contains("job long\n"), "a job is named once accepted: {}", other.err);
    sandbox.wait_until("it says that it waits for workers", |sandbox| {
        let status = sandbox.fine(&format!("status long --json {DATA}")).json();
        status["waiting_for"] == "workers"
    });
    let _workers = task_managers(&sandbox, 1, "");
    sandbox.fine(&format!("cancel long {DATA}"));
    let listed = sandbox.fine(&format!("list --json {DATA}")).json_lines();
    assert_eq!((listed.len(), &listed[0]["state"]), (1, &"CANCELED".into()));
    assert_eq!(sandbox.regrow(&format!("wait long {DATA}")).code, Some(3));
    let unknown = sandbox.regrow(&format!("wait short {DATA}"));
    assert_eq!(unknown.code, Some(2), "{}", unknown.err);
    assert!(unknown.err.contains("no job short"), "{}", unknown.err);
}

#[test]
fn who_finds_no_leader_says_where_it_looked() {
    let sandbox = Sandbox::new();
    let line = format!("list {DATA} -D client.leader-timeout=100ms");
    let nowhere = sandbox.regrow(&line);
    assert_eq!(nowhere.code, Some(4), "{}", nowhere.err);
    assert!(nowhere.err.contains("cluster (there is no such directory)"), "{}", nowhere.err);
    let line = format!("{line} -D jobmanager.rpc.addresses=127.0.0.1:1");
    let refused = sandbox.regrow(&line);
    assert_eq!(refused.code, Some(4), "{}", refused.err);
    assert!(refused.err.contains("127.0.0.1:1 (nothing listens there)"), "{}", refused.err);
}

#[test]
fn fault_45_strangers_are_refused_and_harm_nobody() {
    let sandbox = Sandbox::new();
    let manager = leader(&sandbox, "");
    let address = address(&manager);
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[0, 0, 0, 1, 7], b""] {
        let mut stream = TcpStream::connect(&address).expect("it listens");
        stream.write_all(garbage).expect("it takes bytes");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("it can be set");
        drop(garbage.is_empty().then(|| stream.shutdown(std::net::Shutdown::Write)));
        // Its hello, and then the end.
        drop(stream.read_to_end(&mut Vec::new()));
    }
    let other = sandbox.regrow(&format!(
        "list {DATA} -D high-availability.cluster-id=other -D client.leader-timeout=200ms"
    ));
    assert_eq!(other.code, Some(4), "{}", other.err);
    assert!(other.err.contains("\"other\"") && other.err.contains("\"default\""), "{}", other.err);
    sandbox.fine(&format!("list {DATA}"));
}

#[test]
fn fault_34_what_a_dead_worker_held_goes_when_its_directory_is_taken_over_later() {
    let sandbox = Sandbox::new();
    let first = leader(&sandbox, "");
    let mut workers = task_managers(&sandbox, 2, "");
    let submit = sandbox.start(&format!(
        "submit stages --stage 4x50ms --stage 4x1s --bytes 10kb --ledger ledger {DATA} \
         -D taskmanager.reconnect-grace=50ms"
    ));
    sandbox.wait_for_starts("ledger", 1, 4);
    workers.pop().expect("there are two").kill();
    assert_eq!(submit.wait(), Some(0));
    assert!(!sandbox.files("cluster/shuffle", "part").is_empty(), "nobody could remove them");
    first.kill();
    let _second = leader(&sandbox, "");
    workers.extend(task_managers(&sandbox, 1, ""));
    sandbox.wait_until("the partitions of the ended run are gone", |sandbox| {
        sandbox.files("cluster/shuffle", "part").is_empty()
    });
}
