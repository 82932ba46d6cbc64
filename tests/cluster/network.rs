//! A cluster whose network is cut, for longer and for less than it takes to notice.

use std::time::Duration;

use crate::{
    proxy::Proxy,
    roles::{DATA, address, leader, task_manager},
    sandbox::{Running, Sandbox, assert_finished_stays_finished, count},
};

/// Finds a silent peer soon, though not on a machine that is merely busy, and gives it up soon after.
const HASTY: &str = "-D heartbeat.interval=100ms -D heartbeat.timeout=1500ms \
                     -D taskmanager.reconnect-grace=100ms";

/// How often a connection breaks, each time as soon as it is there.
const FLAPS: usize = 40;

/// A leader, and a `TaskManager` that reaches it through a proxy only.
fn divided(sandbox: &Sandbox, flags: &str) -> (Running, Proxy, Running) {
    let manager = leader(sandbox, flags);
    let proxy = Proxy::new(&address(&manager));
    let there = format!("-D jobmanager.rpc.addresses={} {flags}", proxy.address());
    let worker = task_manager(sandbox, &there);
    (manager, proxy, worker)
}

/// How often the ledger tells of `event`.
fn counted(sandbox: &Sandbox, event: &str) -> usize {
    if sandbox.path("ledger").exists() { count(&sandbox.ledger("ledger"), event) } else { 0 }
}

#[test]
fn rule_4_7_a_cut_that_is_shorter_than_the_timeouts_is_not_noticed() {
    let sandbox = Sandbox::new();
    let (_leader, proxy, _worker) = divided(&sandbox, "");
    let submit = sandbox
        .start(&format!("submit stages --stage 4x100ms --stage 2x100ms --ledger ledger {DATA}"));
    sandbox.wait_for_starts("ledger", 0, 2);
    proxy.hold();
    sandbox.wait_until("two tasks ended in the dark", |sandbox| counted(sandbox, "end") == 2);
    assert_eq!(counted(&sandbox, "start"), 2);
    proxy.heal();
    assert_eq!(submit.wait(), Some(0));
    assert_eq!((counted(&sandbox, "start"), counted(&sandbox, "end")), (6, 6));
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn rule_4_7_a_worker_that_was_given_up_brings_back_what_it_finished() {
    let sandbox = Sandbox::new();
    let (mut leader, proxy, _worker) = divided(&sandbox, HASTY);
    let submit = sandbox.start(&format!(
        "submit stages --stage 4x50ms --stage 2x2s --bytes 10kb --ledger ledger --job-id J {DATA}"
    ));
    sandbox.wait_for_starts("ledger", 1, 2);
    proxy.hold();
    leader.until("the worker is given up", |line| line.contains("a worker is gone"));
    sandbox.wait_until("it runs on, and says that it waits for workers", |sandbox| {
        let status = sandbox.fine(&format!("status J --json {DATA}")).json();
        (&status["state"], &status["waiting_for"]) == (&"RUNNING".into(), &"workers".into())
    });
    proxy.heal();
    assert_eq!(submit.wait(), Some(0));
    // The second stage ran again, and the first, whose output came back, did not.
    assert_eq!(counted(&sandbox, "end"), 6);
    assert!(proxy.connections() > 1);
}

#[test]
fn fault_32_a_connection_that_flaps_loses_nothing() {
    let sandbox = Sandbox::new();
    let (_leader, proxy, _worker) = divided(&sandbox, "");
    let mut submit = sandbox.start(&format!(
        "submit stages --stage 20x20ms --stage 20x20ms --stage 1x0s --bytes 10kb --splits 20 \
         --ledger ledger {DATA}"
    ));
    sandbox.wait_for_starts("ledger", 0, 1);
    let mut flaps = 0;
    while flaps < FLAPS && !submit.has_ended() {
        let connections = proxy.connections();
        proxy.flap();
        flaps += 1;
        sandbox.wait_until("the worker connects again", |_| proxy.connections() > connections);
    }
    assert_eq!(submit.wait(), Some(0));
    assert!(flaps > 5, "{flaps}");
    assert_eq!((counted(&sandbox, "start"), counted(&sandbox, "end")), (41, 41));
}

#[test]
fn a_slow_network_only_takes_its_time() {
    let sandbox = Sandbox::new();
    let (_leader, proxy, _worker) = divided(&sandbox, "");
    proxy.delay(Duration::from_millis(30));
    sandbox.fine(&format!(
        "submit stages --stage 4x10ms --stage 2x10ms --bytes 10kb --ledger ledger {DATA}"
    ));
    assert_eq!((counted(&sandbox, "start"), counted(&sandbox, "end")), (6, 6));
}

#[test]
fn rule_4_2_a_leader_that_comes_back_elsewhere_is_found_behind_the_same_address() {
    let sandbox = Sandbox::new();
    let (first, proxy, _worker) = divided(&sandbox, "");
    let submit = sandbox
        .start(&format!("submit stages --stage 6x200ms --stage 1x0s --ledger ledger {DATA}"));
    sandbox.wait_for_starts("ledger", 0, 3);
    proxy.cut();
    first.kill();
    let second = leader(&sandbox, "");
    proxy.lead_to(&address(&second));
    proxy.heal();
    assert_eq!(submit.wait(), Some(0));
    assert_finished_stays_finished(&sandbox.ledger("ledger"));
}

#[test]
fn fault_43_each_timeout_at_its_least_value_costs_work_and_never_the_job() {
    let least = "-D taskmanager.reconnect-grace=0s -D taskmanager.registration.timeout=0s \
                 -D taskmanager.drain-timeout=0s -D restart-strategy.fixed-delay.delay=0s \
                 -D execution.batch.job-recovery.previous-worker.recovery.timeout=0s \
                 -D execution.batch.job-recovery.snapshot.min-pause=0s \
                 -D job-event.store.write-buffer.flush-interval=0s \
                 -D job-event.store.write-buffer.size=1b -D job-event.store.unavailable-timeout=0s";
    let sandbox = Sandbox::new();
    let first = leader(&sandbox, least);
    let _worker = task_manager(&sandbox, least);
    let submit = sandbox.start(&format!(
        "submit stages --stage 4x100ms --stage 2x100ms --bytes 10kb --ledger ledger {DATA} {least}"
    ));
    sandbox.wait_for_starts("ledger", 0, 3);
    first.kill();
    let _second = leader(&sandbox, least);
    assert_eq!(submit.wait(), Some(0));
}
