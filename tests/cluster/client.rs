//! What a client of a cluster sees of its jobs, whatever happens to those who lead them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, thread,
};

use serde_json::Value;

use crate::{
    roles::{DATA, leader, standby, takes_over, task_managers},
    sandbox::{Sandbox, assert_finished_stays_finished},
};

/// States that a job may be seen in before its end.
const LIVE: [&str; 4] = ["INITIALIZING", "RUNNING", "RECONCILING", "CANCELLING"];

/// Asks how all jobs stand until none lives and that was seen twice; gives the states of each, as
/// they changed.
fn watch(sandbox: &Sandbox) -> BTreeMap<String, Vec<String>> {
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut quiet = 0;
    while quiet < 2 {
        let mut jobs = sandbox.fine(&format!("list --json {DATA}")).json_lines();
        jobs.push(sandbox.fine(&format!("status counted --json {DATA}")).json());
        assert_eq!(jobs.len(), 3, "no job is ever unknown: {jobs:?}");
        for job in &jobs {
            let (id, state) = (text(&job["job_id"]), text(&job["state"]));
            let states = seen.entry(id).or_default();
            if states.last() != Some(&state) {
                states.push(state);
            }
        }
        let lives = jobs.iter().any(|job| LIVE.contains(&&*text(&job["state"])));
        quiet = if lives { 0 } else { quiet + 1 };
    }
    seen
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Checks O3 and fault 47: live states, none of which comes after a terminal one, which is the last.
fn assert_one_end(states: &[String], end: &str) {
    let before = &states[..states.len() - 1];
    assert_eq!(states[before.len()], end, "{states:?}");
    assert!(before.iter().all(|state| LIVE.contains(&&**state)), "{states:?}");
    let begun = before.iter().position(|state| state != "INITIALIZING").unwrap_or(before.len());
    assert!(!before[begun..].contains(&"INITIALIZING".to_owned()), "{states:?}");
}

#[test]
fn fault_47_status_cancel_and_wait_throughout_failovers_show_one_end() {
    let sandbox = Sandbox::new();
    let first = leader(&sandbox, "");
    let mut second = standby(&sandbox, "");
    let _workers = task_managers(&sandbox, 2, "");
    sandbox.fine(&format!("submit stages --stage 2x60s --job-id endless --detached {DATA}"));
    sandbox.fine(&format!(
        "submit stages --stage 6x200ms --stage 4x300ms --stage 1x0s --ledger ledger --job-id counted \
         --detached {DATA}"
    ));
    thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&sandbox));
        let wait = sandbox.start(&format!("wait counted --json {DATA}"));
        sandbox.wait_for_starts("ledger", 0, 4);
        first.kill();
        let mut cancel = sandbox.start(&format!("cancel endless {DATA}"));
        takes_over(&mut second);
        let mut third = standby(&sandbox, "");
        sandbox.wait_for_starts("ledger", 1, 1);
        second.kill();
        takes_over(&mut third);
        cancel.until("the cancel is recorded", |line| line.contains("CANCELED"));
        assert_eq!((wait.wait(), cancel.wait()), (Some(0), Some(0)));
        let seen = watcher.join().expect("it sees what is allowed");
        assert_one_end(&seen["counted"], "FINISHED");
        assert_one_end(&seen["endless"], "CANCELED");
        assert_finished_stays_finished(&sandbox.ledger("ledger"));

        let looked = |what: &str| sandbox.fine(&format!("{what} counted --json {DATA}")).out;
        let (events, recoveries) = (looked("events"), looked("recovery"));
        assert!(events.lines().last().unwrap_or_default().contains("JobTerminated"));
        let lines = recoveries.lines().map(serde_json::from_str::<Value>);
        let epochs: BTreeSet<u64> =
            lines.filter_map(|line| line.expect("a JSON line")["epoch"].as_u64()).collect();
        assert_eq!(epochs.len(), 2, "{recoveries}");
        third.kill();
        assert!(looked("events") == events && looked("recovery") == recoveries, "as before");
        assert!(!sandbox.path("cluster/runs/counted").exists());
    });
}

#[test]
fn fault_49_what_is_recorded_is_shown_by_a_leader_and_when_there_is_none() {
    let sandbox = Sandbox::new();
    let manager = leader(&sandbox, "");
    sandbox.fine(&format!("submit stages --stage 2x60s --job-id waits --detached {DATA}"));
    let events = || sandbox.fine(&format!("events waits --json {DATA}")).json_lines();
    let by_leader = events();
    assert_eq!(by_leader[0]["event"], "JobSubmitted");
    let unknown = sandbox.regrow(&format!("events nobody {DATA}"));
    assert_eq!(unknown.code, Some(2), "{}", unknown.err);
    assert!(unknown.err.contains("no job nobody"), "{}", unknown.err);
    manager.kill();
    assert_eq!(events()[..by_leader.len()], by_leader[..]);
    let alone = sandbox.regrow(&format!("status waits {DATA} -D client.leader-timeout=50ms"));
    assert_eq!(alone.code, Some(4), "{}", alone.err);
    assert!(alone.err.contains("job waits has not ended") && alone.err.contains(" ago"));
    let recovery = sandbox.fine(&format!("recovery waits {DATA}"));
    assert!(recovery.out.contains("had no recovery"), "{}", recovery.out);
    let unknown = sandbox.regrow(&format!("recovery nobody {DATA}"));
    assert_eq!(unknown.code, Some(2), "{}", unknown.err);
}

#[test]
fn a_new_job_is_refused_where_something_is_and_a_failed_one_leaves_nothing() {
    let sandbox = Sandbox::new();
    let _leader = leader(&sandbox, "");
    let _workers = task_managers(&sandbox, 1, "");
    fs::write(sandbox.path("text"), "a b a\n").unwrap();
    let submit = |output: &str, more: &str| {
        let output = sandbox.path(output).display().to_string();
        sandbox.regrow(&format!("submit wordcount --output {output} {DATA} {more}"))
    };
    fs::create_dir(sandbox.path("used")).unwrap();
    fs::write(sandbox.path("used/part-00000.csv"), "old\n").unwrap();
    let refused = submit("used", "--input text");
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("is not empty") && refused.err.contains("--overwrite"));
    assert_eq!(sandbox.fine(&format!("list {DATA}")).out, "", "it was not accepted");
    let failed = submit("above/new", "--input nothing-here --job-id again");
    assert_eq!(failed.code, Some(1), "{}", failed.err);
    assert!(failed.err.contains("nothing-here"), "{}", failed.err);
    assert!(!sandbox.path("above").exists());
    fs::write(sandbox.path("nothing-here"), "b\n").unwrap();
    let again = submit("above/new", "--input nothing-here --job-id again");
    assert_eq!(again.code, Some(0), "another submission is another run: {}", again.err);
    assert_eq!(submit("used", "--input text --overwrite").code, Some(0));
    let finished = submit("above/new", "--input nothing-here --job-id again");
    assert_eq!(finished.code, Some(0), "its result, although there is output: {}", finished.err);
}

#[test]
fn a_worker_that_sees_another_disk_is_named_with_the_path() {
    let sandbox = Sandbox::new();
    let _leader = leader(&sandbox, "");
    fs::create_dir(sandbox.path("disk")).unwrap();
    for name in ["text", "disk/text"] {
        fs::write(sandbox.path(name), "a b a\n").unwrap();
    }
    let submit = |paths: &str| {
        format!(
            "$0 submit wordcount {paths} --json {DATA} -D restart-strategy.fixed-delay.delay=0; "
        )
    };
    let Some(answer) = sandbox.with_mounts(&format!(
        "mount -t tmpfs none disk || exit 99; $0 taskmanager {DATA} & worker=$!; {}{} kill -9 $worker",
        submit("--input text --output disk/out"),
        submit("--input disk/text --output out"),
    )) else {
        return;
    };
    let results = answer.json_lines();
    let errors: Vec<String> = results.iter().map(|result| text(&result["error"])).collect();
    assert!(errors[0].contains("disk/out is not seen here"), "{errors:?}");
    assert!(errors[1].contains("disk/text"), "{errors:?}");
    for error in &errors {
        assert!(error.contains("(at worker ") && error.contains(", process "), "{error}");
    }
    assert!(!sandbox.path("disk/out").exists() && !sandbox.path("out").exists());
}
