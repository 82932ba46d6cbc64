//! The job `join`, as a user runs it: the pairs are right, whatever is killed.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[expect(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a helper of tests, which share it"
)]
#[path = "support/sandbox.rs"]
mod sandbox;

use std::{collections::BTreeMap, fmt::Write as _, fs, time::Duration};

use sandbox::{Sandbox, assert_finished_stays_finished, count};

/// So many tasks that some have finished at any kill.
const TASKS: &str = "-D execution.batch.adaptive.auto-parallelism.default-source-parallelism=8 \
     -D execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task=64kb";

/// What is joined, but for the type.
const FILES: &str = "--left visits.csv --right sites.csv --left-key site --right-key name --header";

/// Columns of the right file.
const RIGHT_COLUMNS: usize = 3;

/// The stage of a left join that joins: after those that read, and the one that counts columns.
const JOIN_STAGE: u32 = 3;

/// Rows of the left and of the right side, each with its key first.
struct Sides {
    left: Vec<(String, String)>,
    right: Vec<(String, String)>,
}

impl Sides {
    /// Visits, a fifth of them to the site `hot`, of which there are several; some sites get no
    /// visit, some visits go nowhere, and some have no site at all.
    fn skewed(rows: usize) -> Self {
        let key = |number: usize| match number % 10 {
            0 | 1 => "hot".to_owned(),
            2 => String::new(),
            _ => format!("site {}", number * 7_919 % (rows / 3)),
        };
        let left = (0..rows).map(|number| {
            let key = key(number);
            (key.clone(), format!("{number},{key},\"/a, {}\"", "b".repeat(number % 90)))
        });
        let right = (0..rows / 4).map(|number| {
            let key = if number % 500 == 3 { "hot".to_owned() } else { format!("site {number}") };
            (key.clone(), format!("{key},{},{}", number % 10, "c".repeat(number % 80)))
        });
        Self { left: left.collect(), right: right.collect() }
    }

    fn write(&self, sandbox: &Sandbox) {
        let text = |header: &str, rows: &[(String, String)]| {
            let mut text = format!("{header}\n");
            for (_, row) in rows {
                writeln!(text, "{row}").unwrap();
            }
            text
        };
        fs::write(sandbox.path("visits.csv"), text("id,site,path", &self.left)).unwrap();
        fs::write(sandbox.path("sites.csv"), text("name,rank,about", &self.right)).unwrap();
    }

    /// The lines of the join, sorted.
    fn joined(&self, keeps_left: bool) -> Vec<String> {
        let mut by_key = BTreeMap::<&str, Vec<&str>>::new();
        for (key, row) in &self.right {
            by_key.entry(key).or_default().push(row);
        }
        let mut lines = Vec::new();
        for (key, left) in &self.left {
            match by_key.get(key.as_str()) {
                Some(rights) => lines.extend(rights.iter().map(|right| format!("{left},{right}"))),
                None if keeps_left => lines.push(format!("{left}{}", ",".repeat(RIGHT_COLUMNS))),
                None => {}
            }
        }
        lines.sort();
        lines
    }
}

fn with_sides(rows: usize) -> (Sandbox, Sides) {
    let sandbox = Sandbox::new();
    let sides = Sides::skewed(rows);
    sides.write(&sandbox);
    (sandbox, sides)
}

#[test]
fn the_pairs_are_those_of_a_plain_loop() {
    let (sandbox, sides) = with_sides(3_000);
    for (kind, keeps_left) in [("inner", false), ("left", true)] {
        sandbox.fine(&format!("run join {FILES} --type {kind} --output {kind} --slots 2 {TASKS}"));
        assert_eq!(sandbox.output(kind), sides.joined(keeps_left));
    }
}

#[test]
fn little_memory_gives_the_same_pairs() {
    let (sandbox, sides) = with_sides(4_000);
    for (kind, keeps_left) in [("inner", false), ("left", true)] {
        sandbox.fine(&format!(
            "run join {FILES} --type {kind} --output {kind} \
             -D taskmanager.memory.task.size=1kb \
             -D execution.batch.adaptive.auto-parallelism.max-parallelism=1"
        ));
        assert_eq!(sandbox.output(kind), sides.joined(keeps_left));
        sandbox.assert_nothing_left();
    }
}

#[test]
fn columns_have_numbers_where_files_have_no_names() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("a.csv"), "1,x\n2,y\n3,\n01,z\n").unwrap();
    fs::write(sandbox.path("b.csv"), "x,red\n,none\nx,\"blue, dark\"\n").unwrap();
    let line = "run join --left a.csv --right b.csv --left-key 2 --right-key 1";
    sandbox.fine(&format!("{line} --output inner"));
    assert_eq!(sandbox.output("inner"), ["1,x,x,\"blue, dark\"", "1,x,x,red", "3,,,none"]);
    sandbox.fine(&format!("{line} --type left --output left"));
    let left = ["01,z,,", "1,x,x,\"blue, dark\"", "1,x,x,red", "2,y,,", "3,,,none"];
    assert_eq!(sandbox.output("left"), left);
}

#[test]
fn a_side_may_be_empty() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("visits.csv"), "id,site\n1,a\n").unwrap();
    fs::write(sandbox.path("sites.csv"), "name,rank,about\n").unwrap();
    sandbox.fine(&format!("run join {FILES} --output inner"));
    assert_eq!(sandbox.published("inner"), [""; 0]);
    sandbox.fine(&format!("run join {FILES} --type left --output left"));
    assert_eq!(sandbox.output("left"), ["1,a,,,"]);
    fs::write(sandbox.path("visits.csv"), "id,site\n").unwrap();
    sandbox.fine(&format!("run join {FILES} --type left --output none"));
    assert_eq!(sandbox.published("none"), [""; 0]);
}

#[test]
fn p1_p2_kills_of_the_coordinator_change_no_pair_and_repeat_no_finished_task() {
    let (sandbox, sides) = with_sides(8_000);
    let answer = sandbox.fine(&format!(
        "run join {FILES} --type left --output joined --slots 2 --ledger ledger --json {TASKS} \
         --kill-jobmaster-at 30% --kill-jobmaster-at 60%:panic"
    ));
    assert_eq!(sandbox.output("joined"), sides.joined(true));
    assert_eq!(answer.json()["recoveries"], 2);
    let ledger = sandbox.ledger("ledger");
    assert_eq!(count(&ledger, "kill"), 2);
    assert_finished_stays_finished(&ledger);
    sandbox.assert_nothing_left();
}

#[test]
fn p1_p2_a_join_survives_kills_of_the_process_in_each_of_its_stages() {
    let (sandbox, sides) = with_sides(8_000);
    let line = format!(
        "run join {FILES} --output joined --slots 2 --ledger ledger --job-id x \
         -D taskmanager.memory.task.size=100kb {TASKS}"
    );
    for stage in 0..3 {
        let mut running = sandbox.start(&format!("{line} --quiet"));
        sandbox.wait_for_starts("ledger", stage, 2);
        assert!(!running.ends_within(Duration::ZERO), "it has ended too soon to be killed");
        running.kill();
    }
    sandbox.fine(&line);
    assert_eq!(sandbox.output("joined"), sides.joined(false));
    assert_finished_stays_finished(&sandbox.ledger("ledger"));
    sandbox.assert_nothing_left();
}

#[test]
fn p3_3_a_left_join_is_as_wide_as_the_file_was_though_it_changes_before_the_job_is_resumed() {
    let (sandbox, sides) = with_sides(8_000);
    let line = format!(
        "run join {FILES} --type left --output joined --slots 2 --ledger ledger --job-id x \
         -D taskmanager.memory.task.size=100kb {TASKS}"
    );
    let mut running = sandbox.start(&format!("{line} --quiet"));
    sandbox.wait_for_starts("ledger", JOIN_STAGE, 2);
    assert!(!running.ends_within(Duration::ZERO), "it has ended too soon to be killed");
    running.kill();
    fs::write(sandbox.path("sites.csv"), "name,rank,about,more\nhot,1,2,3\n").unwrap();
    sandbox.fine(&line);
    assert_eq!(sandbox.output("joined"), sides.joined(true));
    assert_finished_stays_finished(&sandbox.ledger("ledger"));
    sandbox.assert_nothing_left();
}

#[test]
fn wrong_columns_are_told_with_what_is_there() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("a.csv"), "id,site\n1,a\n").unwrap();
    fs::write(sandbox.path("b.csv"), "name,rank\na,1\n").unwrap();
    let join = |rest: &str| {
        let line = format!("run join --left a.csv --right b.csv --output out {rest}");
        let answer = sandbox.regrow(&line);
        assert_eq!(fs::exists(sandbox.path("out/part-00000.csv")).ok(), Some(false), "{line}");
        (answer.code, answer.err)
    };
    let (code, error) = join("--left-key site --right-key nam --header");
    assert_eq!(code, Some(1), "{error}");
    assert!(
        error.contains("b.csv has no column nam") && error.contains("did you mean name?"),
        "{error}"
    );
    let (code, error) = join("--left-key 3 --right-key 1");
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("a.csv has no column 3"), "{error}");
    for (rest, word) in [
        ("--left-key site --right-key 1", "--header"),
        ("--left-key 0 --right-key 1", "the first one is 1"),
        ("--left-key 1 --right-key 1 --type outer", "inner"),
        ("--left-key 1", "--right-key"),
    ] {
        let (code, error) = join(rest);
        assert_eq!(code, Some(2), "{rest}: {error}");
        assert!(error.contains(word), "{rest}: {error}");
    }
    let answer = sandbox
        .regrow("run join --left a.csv --right gone.csv --left-key 1 --right-key 1 --output out");
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.err.contains("gone.csv"), "{}", answer.err);
}
