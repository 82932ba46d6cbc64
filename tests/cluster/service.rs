//! A cluster whose partitions a stand-alone shuffle service keeps: whoever ran a task may die.

use std::fs;

use crate::{
    roles::{DATA, address, leader, task_managers, wait_until_clean},
    sandbox::{Running, Sandbox, assert_finished_stays_finished, count},
};

/// What makes a `TaskManager` one that writes for a shuffle service.
const WRITER: &str = "-D shuffle-service.type=stand-alone";

/// Starts a shuffle service with further `flags`, and waits until it keeps its directory and listens.
fn shuffle_service(sandbox: &Sandbox, flags: &str) -> Running {
    let mut service = sandbox.start(&format!("REGROW_LOG=info shuffle-service {DATA} {flags}"));
    service.until("it keeps a directory", |line| line.starts_with("keeping partitions"));
    service.until("it listens", |line| line.starts_with("listening on "));
    service
}

/// Starts a job of two stages and a last task.
fn submit(sandbox: &Sandbox, flags: &str) -> Running {
    sandbox.start(&format!(
        "submit stages --stage 8x400ms --stage 6x400ms --stage 1x0s --bytes 20kb --ledger ledger \
         --job-id J {DATA} {flags}"
    ))
}

/// Checks that each of the tasks ran once, whoever died, and nothing is left.
fn assert_each_ran_once(sandbox: &Sandbox) {
    let ledger = sandbox.ledger("ledger");
    assert_eq!((count(&ledger, "start"), count(&ledger, "end")), (15, 15), "{ledger:#?}");
    wait_until_clean(sandbox);
}

/// Halts workers at a moment when one of them runs a task: what kills them then finds them at work.
fn halt_at_work(sandbox: &Sandbox, workers: &[Running]) {
    let signal = |name| {
        for worker in workers {
            worker.signal(name);
        }
    };
    sandbox.wait_until("a halted worker runs a task", |sandbox| {
        signal("STOP");
        let ledger = sandbox.ledger("ledger");
        let is_at_work = count(&ledger, "start") > count(&ledger, "end");
        if !is_at_work {
            signal("CONT");
        }
        is_at_work
    });
}

#[test]
fn no_finished_task_runs_again_when_all_task_managers_die_with_the_job_manager() {
    let sandbox = Sandbox::new();
    // Started in any order.
    let mut workers = task_managers(&sandbox, 2, WRITER);
    for worker in &mut workers {
        let waits = |line: &str| line.starts_with("waiting for a shuffle service in ");
        worker.until("it waits for a shuffle service", waits);
    }
    let mut master = leader(&sandbox, "");
    let submit = submit(&sandbox, "");
    let service = shuffle_service(&sandbox, "");
    for (stage, starts) in [(0, 6), (1, 4)] {
        sandbox.wait_for_starts("ledger", stage, starts);
        halt_at_work(&sandbox, &workers);
        master.kill();
        workers.drain(..).for_each(Running::kill);
        workers.extend(task_managers(&sandbox, 2, WRITER));
        master = leader(&sandbox, "");
    }
    assert_eq!(submit.wait(), Some(0));
    let ledger = sandbox.ledger("ledger");
    assert_finished_stays_finished(&ledger);
    assert_eq!(count(&ledger, "end"), 15);
    assert!(count(&ledger, "start") > 15, "somebody was killed at work");
    wait_until_clean(&sandbox);
    drop(service);
}

#[test]
fn a_service_that_is_killed_or_stopped_comes_back_with_all_that_it_kept() {
    let sandbox = Sandbox::new();
    let first = shuffle_service(&sandbox, "");
    let _master = leader(&sandbox, "");
    let _workers = task_managers(&sandbox, 2, WRITER);
    let submit = submit(&sandbox, "");
    sandbox.wait_for_starts("ledger", 0, 5);
    first.kill();
    let second = shuffle_service(&sandbox, "");
    sandbox.wait_for_starts("ledger", 1, 3);
    second.signal("TERM");
    assert_eq!(second.wait(), Some(0));
    let third = shuffle_service(&sandbox, "");
    assert_eq!(submit.wait(), Some(0));
    assert_each_ran_once(&sandbox);
    drop(third);
}

#[test]
fn rule_4_7_what_a_lost_service_kept_runs_again_only_if_it_stays_away() {
    let sandbox = Sandbox::new();
    let first = shuffle_service(&sandbox, "");
    let grace = "-D taskmanager.reconnect-grace=100ms";
    let _master = leader(&sandbox, grace);
    let _workers = task_managers(&sandbox, 2, WRITER);
    let submit = submit(&sandbox, grace);
    sandbox.wait_for_starts("ledger", 1, 1);
    first.kill();
    sandbox.wait_until("the job waits for the service", |sandbox| {
        let status = sandbox.fine(&format!("status J --json {DATA}")).json();
        status["waiting_for"] == "shuffle service"
    });
    let _second = shuffle_service(&sandbox, "");
    assert_eq!(submit.wait(), Some(0));
    assert_each_ran_once(&sandbox);
}

#[test]
fn words_are_counted_once_although_whoever_counted_them_died() {
    let sandbox = Sandbox::new();
    let words: Vec<String> = (0..700).map(|word| format!("word{word} and\n")).collect();
    let text = words.concat().repeat(80);
    fs::create_dir(sandbox.path("in")).expect("it is not there");
    for part in 0..6 {
        fs::write(sandbox.path(&format!("in/{part}")), &text).expect("it can be written");
    }
    let service = shuffle_service(&sandbox, "");
    let master = leader(&sandbox, "");
    let workers = task_managers(&sandbox, 2, WRITER);
    let submit = sandbox.start(&format!(
        "submit wordcount --input in --output out --ledger ledger {DATA} \
         -D execution.batch.adaptive.auto-parallelism.default-source-parallelism=12"
    ));
    sandbox.wait_for_starts("ledger", 0, 8);
    master.kill();
    workers.into_iter().for_each(Running::kill);
    let _workers = task_managers(&sandbox, 2, WRITER);
    let _master = leader(&sandbox, "");
    assert_eq!(submit.wait(), Some(0));
    assert_finished_stays_finished(&sandbox.ledger("ledger"));
    fs::write(sandbox.path("all"), text.repeat(6)).expect("it can be written");
    assert_eq!(sandbox.output("out"), sandbox.counted("all"));
    wait_until_clean(&sandbox);
    drop(service);
}

#[test]
fn one_service_keeps_a_directory_and_notices_which_of_its_writers_died() {
    let sandbox = Sandbox::new();
    let mut first = shuffle_service(&sandbox, "");
    let address = address(&first);
    let second = sandbox.regrow(&format!("shuffle-service {DATA}"));
    assert_eq!(second.code, Some(2), "{}", second.err);
    let named = format!("process {} at {address}", first.id());
    assert!(second.err.contains(&named), "{}", second.err);
    let places = |sandbox: &Sandbox| sandbox.files("cluster/shuffle", "/writers/").len();
    let mut workers = task_managers(&sandbox, 2, WRITER);
    for worker in &mut workers {
        worker.until("it runs", |line| line.starts_with("running tasks"));
    }
    assert_eq!(places(&sandbox), 2);
    workers.pop().expect("there are two").kill();
    first.until("it notices", |line| line.contains("removed what a dead writer left unsealed"));
    assert_eq!(places(&sandbox), 1);
}

#[test]
fn fault_34_a_service_that_was_dead_when_a_job_ended_is_told_when_it_comes_back() {
    let sandbox = Sandbox::new();
    let first = shuffle_service(&sandbox, "");
    let _master = leader(&sandbox, "");
    let _workers = task_managers(&sandbox, 2, WRITER);
    let submit = submit(&sandbox, "");
    sandbox.wait_for_starts("ledger", 1, 1);
    first.kill();
    sandbox.fine(&format!("cancel J {DATA}"));
    assert_eq!(submit.wait(), Some(3));
    assert!(!sandbox.files("cluster/shuffle", ".partition").is_empty());
    let _second = shuffle_service(&sandbox, "");
    wait_until_clean(&sandbox);
}
