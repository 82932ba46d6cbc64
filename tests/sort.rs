//! The job `sort`, as a user runs it: all records are there and in order, whatever is killed.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[expect(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a helper of tests, which share it"
)]
#[path = "support/sandbox.rs"]
mod sandbox;

use std::fs;

use sandbox::{Sandbox, assert_finished_stays_finished, count};

/// Many small tasks, none of which can sort in memory what it reads.
const TASKS: &str = "-D execution.batch.adaptive.auto-parallelism.default-source-parallelism=12 \
     -D execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task=256kb \
     -D taskmanager.memory.task.size=256kb";

fn with_records(size: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.fine(&format!("generate records --size {size} --files 3 --output records"));
    sandbox
}

fn in_order(mut records: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    records.sort();
    records
}

/// The records of all visible files of a directory, in the order of the files' names.
fn records(sandbox: &Sandbox, directory: &str) -> Vec<Vec<u8>> {
    let bytes = sandbox
        .published(directory)
        .iter()
        .flat_map(|name| fs::read(sandbox.path(directory).join(name)).unwrap())
        .collect::<Vec<u8>>();
    bytes.chunks(100).map(<[u8]>::to_vec).collect()
}

fn assert_sorted(sandbox: &Sandbox) {
    let sorted = records(sandbox, "sorted");
    assert!(sorted == in_order(records(sandbox, "records")), "{} records differ", sorted.len());
}

#[test]
fn records_come_in_order_and_so_says_verify() {
    let sandbox = with_records("8mb");
    sandbox.fine(&format!("run sort --input records --output sorted --slots 2 {TASKS}"));
    assert_sorted(&sandbox);
    let files = sandbox.published("sorted").len();
    assert!(files > 10, "{files} files");

    let found = sandbox.fine("verify sorted sorted --json").json();
    assert_eq!(found["records"], 83_886);
    assert_eq!(found["files"], files);
    let input = sandbox.fine("verify checksum records --json").json();
    assert_eq!((&found["records"], &found["checksum"]), (&input["records"], &input["checksum"]));
    let unsorted = sandbox.regrow("verify sorted records");
    assert_eq!(unsorted.code, Some(1), "{unsorted:?}");
    assert!(unsorted.err.contains("part-00000.bin is out of order at byte "), "{}", unsorted.err);
}

#[test]
fn p1_p2_kills_of_the_coordinator_change_no_record_and_repeat_no_finished_task() {
    let sandbox = with_records("8mb");
    let answer = sandbox.fine(&format!(
        "run sort --input records --output sorted --slots 2 --ledger ledger --json {TASKS} \
         --kill-jobmaster-at 10% --kill-jobmaster-at 30%:panic --kill-jobmaster-at 60%"
    ));
    assert_eq!(answer.json()["recoveries"], 3);
    assert_sorted(&sandbox);
    let ledger = sandbox.ledger("ledger");
    assert_eq!(count(&ledger, "kill"), 3);
    assert_finished_stays_finished(&ledger);
    sandbox.assert_nothing_left();
}

#[test]
fn a_sort_that_was_killed_whole_resumes_where_it_was() {
    let sandbox = with_records("8mb");
    let line = format!("run sort --input records --output sorted --ledger ledger {TASKS}");
    let running = sandbox.start(&format!("{line} --slots 1 --job-id whole"));
    // Sampling, deciding, dividing, sorting.
    sandbox.wait_for_starts("ledger", 3, 3);
    running.kill();
    let answer = sandbox.fine("run --resume --slots 2 --json");
    assert_eq!(answer.json()["job_id"], "whole");
    assert_sorted(&sandbox);
    assert_finished_stays_finished(&sandbox.ledger("ledger"));
    sandbox.assert_nothing_left();
}

#[test]
fn one_hot_key_is_sorted_by_several_tasks() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("records")).unwrap();
    let record = |number: u32| {
        let mixed = number.wrapping_mul(2_654_435_769);
        let key = if mixed.is_multiple_of(10) { format!("{mixed:010}") } else { "hot".to_owned() };
        format!("{key:10} {:088}\n", mixed >> 3)
    };
    let text: String = (0..40_000).map(record).collect();
    fs::write(sandbox.path("records/part-0"), text).unwrap();
    sandbox.fine(&format!("run sort --input records --output sorted --slots 2 {TASKS}"));
    assert_sorted(&sandbox);
    let sizes = sandbox
        .published("sorted")
        .into_iter()
        .map(|name| fs::metadata(sandbox.path("sorted").join(name)).unwrap().len());
    let largest = sizes.max().unwrap();
    assert!(largest < 1 << 20, "one task sorted {largest} bytes of 4000000");
}

#[test]
fn a_full_disk_while_spilling_fails_the_job_with_the_file_and_leaves_nothing() {
    let sandbox = with_records("4mb");
    let Some(answer) = sandbox.with_mounts(
        "mkdir disk && mount -t tmpfs -o size=7m none disk || exit 99; \
         $0 run sort --input records --output sorted --data-dir disk --json \
         -D restart-strategy.fixed-delay.delay=1ms -D job-event.store.type=file \
         -D taskmanager.memory.task.size=8mb; \
         code=$?; find disk -type f >left; exit $code",
    ) else {
        return;
    };
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let result = answer.json();
    assert_eq!(result["state"], "FAILED");
    let error = result["error"].as_str().unwrap();
    assert!(error.contains("No space left on device"), "{error}");
    assert!(error.contains("/sorted-"), "no run is named: {error}");
    let left = fs::read_to_string(sandbox.path("left")).unwrap();
    assert!(left.lines().all(|file| file.starts_with("disk/archive/")), "{left}");
    assert_eq!(sandbox.files("sorted", "/").len(), 0);
}
