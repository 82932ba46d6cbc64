//! A cluster whose processes are killed while jobs run.
//!
//! What CI runs is small. `REGROW_TAKEOVERS` is how often a leader is killed in each way, and has the
//! times until the next task starts checked; `REGROW_SEEDS` is how many seeds of random kills each
//! job is run through, and has the time until nothing of it is left checked; `REGROW_SEED` is the
//! first of them, `REGROW_SIZE` and `REGROW_ROWS` the size of their input, `REGROW_PAUSE` the longest
//! pause between two kills in milliseconds; `REGROW_PROGRAM` is another build of the program.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "helpers of tests")]

use std::{
    env, fs,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    roles::{DATA, job_manager, leader, standby, task_managers, wait_until_clean},
    sandbox::{Running, Sandbox, assert_finished_stays_finished, count},
    storm::{self, Storm},
};

/// Within this time after the death of a leader the next task starts: where a standby waits (median),
/// and where a supervisor starts the next process at once.
const STANDBY_MS: u64 = 500;
const SUPERVISOR_MS: u64 = 1_000;

/// Longest pause between two kills of a storm, for a job of seconds.
const PAUSE_MS: u64 = 600;

/// Within this time after the end of a job nothing of it is left; checked where seeds are given.
const CLEAN_WITHIN: Duration = Duration::from_secs(5);

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().expect("it is a number"))
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    u64::try_from(now.as_millis()).expect("it is not that late")
}

/// How a leader ends, and who follows it.
#[derive(Clone, Copy, Debug)]
struct Takeover {
    signal: &'static str,
    has_standby: bool,
}

impl Takeover {
    /// Lets the leader end and somebody follow it; gives the time until the next task starts, unless
    /// all had ended or were about to.
    fn happen(self, sandbox: &Sandbox, managers: &mut Vec<Running>, all: usize) -> Option<u64> {
        let epoch = sandbox.ledger("ledger").iter().map(|line| line.epoch).max();
        let first = managers.remove(0);
        let began = now_ms();
        first.signal(self.signal);
        // A supervisor starts it when it has ended.
        let _ = first.wait();
        managers.push(job_manager(sandbox, ""));
        let later = |sandbox: &Sandbox| {
            let ledger = sandbox.ledger("ledger");
            let mut starts = ledger.iter().filter(|line| line.event == "start");
            starts.find(|line| Some(line.epoch) > epoch).map(|line| line.at_ms)
        };
        sandbox.wait_until("the next leader starts a task", |sandbox| {
            later(sandbox).is_some() || count(&sandbox.ledger("ledger"), "end") == all
        });
        later(sandbox).map(|start| start.saturating_sub(began))
    }

    /// Runs a job through two of them, and gives the times.
    fn run(self, tasks: u32, length: &str) -> Vec<u64> {
        let sandbox = Sandbox::new();
        let mut managers = vec![leader(&sandbox, "")];
        managers.extend(self.has_standby.then(|| standby(&sandbox, "")));
        let _workers = task_managers(&sandbox, 3, "");
        let stage = format!("--stage {tasks}x{length}");
        let submit = sandbox.start(&format!(
            "submit stages {stage} {stage} --stage 1x{length} --ledger ledger --job-id J {DATA}"
        ));
        let all = usize::try_from(2 * tasks + 1).expect("it is small");
        let mut times = Vec::new();
        for percent in [50, 75] {
            sandbox.wait_until("enough tasks have ended", |sandbox| {
                let there = sandbox.path("ledger").exists();
                there && count(&sandbox.ledger("ledger"), "end") * 100 >= all * percent
            });
            times.extend(self.happen(&sandbox, &mut managers, all));
        }
        assert_eq!(submit.wait(), Some(0));
        let ledger = sandbox.ledger("ledger");
        assert_finished_stays_finished(&ledger);
        assert_eq!(count(&ledger, "end"), all, "no task ended twice");
        wait_until_clean(&sandbox);
        times
    }
}

fn check_takeovers(takeover: Takeover, most_ms: u64) {
    let Some(wanted) = number("REGROW_TAKEOVERS") else {
        takeover.run(8, "150ms");
        return;
    };
    let mut times = Vec::new();
    // Tasks of a second leave no doubt that some were still to start.
    while (times.len() as u64) < wanted {
        times.extend(takeover.run(30, "1s"));
    }
    times.sort_unstable();
    let median = times[times.len() / 2];
    println!("{takeover:?}: the next task starts after {median} ms (median of {times:?})");
    assert!(median <= most_ms, "{median} ms");
}

#[test]
fn p1_a_killed_leader_is_followed_by_its_standby_and_nothing_runs_again() {
    check_takeovers(Takeover { signal: "KILL", has_standby: true }, STANDBY_MS);
}

#[test]
fn p1_a_killed_leader_is_started_again_and_nothing_runs_again() {
    check_takeovers(Takeover { signal: "KILL", has_standby: false }, SUPERVISOR_MS);
}

#[test]
fn p1_a_stopped_leader_is_followed_and_nothing_runs_again() {
    check_takeovers(Takeover { signal: "TERM", has_standby: true }, STANDBY_MS);
}

/// Input of about `REGROW_SIZE`, or `usual`.
fn size(usual: &str) -> String {
    env::var("REGROW_SIZE").unwrap_or_else(|_| usual.to_owned())
}

/// Runs a job through random kills, with each seed anew, and checks its output. In CI each job meets
/// one seed, and all together each ground.
fn check_storms(seed: u64, prepare: impl Fn(&Sandbox) -> String, check: impl Fn(&Sandbox)) {
    let (first, seeds) = (number("REGROW_SEED").unwrap_or(seed), number("REGROW_SEEDS"));
    let pause_ms = number("REGROW_PAUSE").unwrap_or(PAUSE_MS);
    for seed in first..first + seeds.unwrap_or(1) {
        println!("repeat with REGROW_SEED={seed}");
        let sandbox = Sandbox::new();
        let job = prepare(&sandbox);
        let mut storm = Storm::new(&sandbox, seed);
        let submit = sandbox.start(&format!("submit {job} --job-id J {DATA} {}", storm::FLAGS));
        let code = storm.rage(&sandbox, submit, pause_ms);
        let status = sandbox.fine(&format!("status J --json {DATA}")).json();
        assert_eq!((code, &status["state"]), (Some(0), &"FINISHED".into()), "{status}");
        println!("{}", storm.told());
        let cleaned = wait_until_clean(&sandbox);
        println!("clean after {} ms", cleaned.as_millis());
        assert!(seeds.is_none() || cleaned <= CLEAN_WITHIN, "clean after {cleaned:?}");
        check(&sandbox);
    }
}

/// Two CSV files; every other row of the left one has a partner.
fn write_tables(sandbox: &Sandbox, rows: u64) {
    for (name, step) in [("left", 1), ("right", 2)] {
        let rows: Vec<String> =
            (0..rows).map(|row| format!("{},{name} {row}", row * step)).collect();
        let text = format!("key,value\n{}\n", rows.join("\n"));
        fs::write(sandbox.path(&format!("{name}.csv")), text).expect("it can be written");
    }
}

#[test]
fn p2_word_count_survives_a_storm_of_kills() {
    let prepare = |sandbox: &Sandbox| {
        let bytes = size("4mb");
        sandbox.fine(&format!("generate text --bytes {bytes} --output text"));
        "wordcount --input text --output counts".to_owned()
    };
    check_storms(1, prepare, |sandbox| {
        assert_eq!(sandbox.output("counts"), sandbox.counted("text"));
    });
}

#[test]
fn p2_a_sort_survives_a_storm_of_kills() {
    let prepare = |sandbox: &Sandbox| {
        sandbox.fine(&format!("generate records --size {} --output records", size("8mb")));
        "sort --input records --output sorted".to_owned()
    };
    check_storms(2, prepare, |sandbox| {
        let summary = |line: &str| {
            let found = sandbox.fine(line).json();
            (found["records"].clone(), found["checksum"].clone())
        };
        let input = summary("verify checksum records --json");
        assert_eq!(summary("verify sorted sorted --json"), input);
    });
}

#[test]
fn p2_a_join_survives_a_storm_of_kills() {
    let job = "join --left left.csv --right right.csv --left-key key --right-key key --header";
    let prepare = |sandbox: &Sandbox| {
        write_tables(sandbox, number("REGROW_ROWS").unwrap_or(50_000));
        sandbox.fine(&format!("run {job} --output undisturbed"));
        format!("{job} --output joined")
    };
    check_storms(3, prepare, |sandbox| {
        assert_eq!(sandbox.output("joined"), sandbox.output("undisturbed"));
    });
}
