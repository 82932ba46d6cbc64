//! Aggregations in a job, against plain maps.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use proptest::prelude::*;
use regrow_protocol::TaskFailure;

use crate::{environment::Environment, test_job::TestJob};

type Record = (String, i64);

fn input(records: &[Record]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut text = String::new();
    for (key, number) in records {
        writeln!(text, "{key} {number}").unwrap();
    }
    std::fs::write(file.path(), text).unwrap();
    file
}

fn parsed(line: &str) -> Record {
    let (key, number) = line.split_once(' ').unwrap();
    (key.to_owned(), number.parse().unwrap())
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// Runs a job twice, which must give the same; gives its lines, sorted.
fn lines<T>(memory: u64, build: impl Fn(&Environment) -> T) -> Vec<String> {
    let first = TestJob::new(memory, &build).lines().unwrap();
    assert_eq!(TestJob::new(memory, &build).lines().unwrap(), first);
    sorted(first)
}

/// Records of few and many keys, short and long ones; together up to some times the memory that a
/// table takes at least.
fn records() -> impl Strategy<Value = Vec<Record>> {
    let record = (0_usize..500, -9_i64..9).prop_map(|(number, value)| {
        let key = format!("{number}{}", "-".repeat(number * 7 % 900));
        (key, value)
    });
    proptest::collection::vec(record, 0..700)
}

fn by_key(records: &[Record]) -> BTreeMap<&str, Vec<i64>> {
    let mut by_key = BTreeMap::<&str, Vec<i64>>::new();
    for (key, number) in records {
        by_key.entry(key).or_default().push(*number);
    }
    by_key
}

fn expected(records: &[Record], result: impl Fn(&[i64]) -> String) -> Vec<String> {
    let by_key = by_key(records);
    sorted(by_key.iter().map(|(key, numbers)| format!("{key},{}", result(numbers))).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]
    #[test]
    fn counts_and_sums_are_those_of_a_plain_map(records in records(), memory in 1_u64..400_000) {
        let file = input(&records);
        let found = lines(memory, |env| {
            let records = env.read_text(file.path()).map(parsed);
            records.key_by_ref(|record| &record.0[..]).count().write_csv("/out")
        });
        prop_assert_eq!(found, expected(&records, |numbers| numbers.len().to_string()));
        let found = lines(memory, |env| {
            let records = env.read_text(file.path()).map(parsed);
            records.key_by(|record| record.0.clone()).sum(|record| record.1).write_csv("/out")
        });
        prop_assert_eq!(found, expected(&records, |numbers| numbers.iter().sum::<i64>().to_string()));
    }

    #[test]
    fn the_least_and_the_greatest_are_found(records in records(), memory in 1_u64..400_000) {
        let file = input(&records);
        let found = lines(memory, |env| {
            let records = env.read_text(file.path()).map(parsed);
            let keyed = records.key_by_ref(|record| &record.0[..]);
            keyed.min_by(|a, b| a.1.cmp(&b.1)).map(|(key, least)| (key.clone(), least.1)).write_csv("/out")
        });
        prop_assert_eq!(found, expected(&records, |numbers| numbers.iter().min().unwrap().to_string()));
        let found = lines(memory, |env| {
            let records = env.read_text(file.path()).map(parsed);
            let keyed = records.key_by_ref(|record| &record.0[..]);
            keyed.max_by(|a, b| a.1.cmp(&b.1)).map(|(key, most)| (key.clone(), most.1)).write_csv("/out")
        });
        prop_assert_eq!(found, expected(&records, |numbers| numbers.iter().max().unwrap().to_string()));
    }

    #[test]
    fn a_fold_may_keep_what_it_saw(records in records(), memory in 1_u64..400_000) {
        let file = input(&records);
        let found = lines(memory, |env| {
            let records = env.read_text(file.path()).map(parsed);
            records
                // Few keys, whose states are large.
                .key_by(|record| (record.1, record.1 % 2 == 0))
                .fold(
                    Vec::new(),
                    |seen: &mut Vec<String>, record| seen.push(record.0.clone()),
                    Extend::extend,
                )
                .map(|((number, even), seen)| {
                    let mut seen = seen.clone();
                    seen.sort();
                    (*number, *even, seen.join(" "))
                })
                .write_csv("/out")
        });
        let mut expected = BTreeMap::<i64, Vec<&str>>::new();
        for (key, number) in &records {
            expected.entry(*number).or_default().push(key);
        }
        let expected = sorted(expected.into_iter().map(|(number, mut seen)| {
            seen.sort_unstable();
            format!("{number},{},{}", number % 2 == 0, seen.join(" "))
        }).collect());
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_reduction_takes_records_two_by_two(records in records(), memory in 1_u64..400_000) {
        let file = input(&records);
        let found = lines(memory, |env| {
            let lengths = env.read_text(file.path()).map(|line| parsed(line).0.len() as u64);
            lengths.key_by(|length| *length % 10).reduce(|a, b| *a += b).write_csv("/out")
        });
        let mut expected = BTreeMap::<usize, usize>::new();
        for (key, _) in &records {
            *expected.entry(key.len() % 10).or_default() += key.len();
        }
        let expected = expected.into_iter().map(|(rest, sum)| format!("{rest},{sum}"));
        prop_assert_eq!(found, sorted(expected.collect()));
    }

    #[test]
    fn distinct_records_are_those_of_a_set(records in records(), memory in 1_u64..400_000) {
        let file = input(&records);
        let expected: BTreeSet<Record> = records.iter().cloned().collect();
        let expected = expected.iter().map(|(key, number)| format!("{key} {number}"));
        let found = lines(memory, |env| env.read_text(file.path()).distinct().write_csv("/out"));
        prop_assert_eq!(&found, &sorted(expected.collect()));
        let found = lines(memory, |env| {
            let records = env.read_text(file.path()).map(parsed).distinct();
            records.map(|(key, number)| format!("{key} {number}")).write_csv("/out")
        });
        prop_assert_eq!(found.len(), records.iter().collect::<BTreeSet<_>>().len());
    }
}

#[test]
fn a_sum_that_no_number_holds_fails_the_job_unless_it_comes_back() {
    let records = [("up", i64::MAX), ("up", 1), ("back", i64::MAX), ("back", 1), ("back", -2)];
    let records = records.map(|(key, number)| (key.to_owned(), number));
    let sum = |records: &[Record]| {
        let file = input(records);
        TestJob::new(1, |env| {
            let records = env.read_text(file.path()).map(parsed);
            records.key_by_ref(|record| &record.0[..]).sum(|record| record.1).write_csv("/out")
        })
        .lines()
    };
    assert_eq!(sum(&records[2..]).unwrap(), [format!("back,{}", i64::MAX - 1)]);
    let Err(TaskFailure::Unrecoverable { message }) = sum(&records) else { panic!("it fits") };
    assert!(message.contains("i64"), "{message}");
}

#[test]
fn a_state_larger_than_its_task_fails_the_job_and_says_what_to_do() {
    let records: Vec<Record> = (0..60_000).map(|n| ("a".repeat(60), n)).collect();
    let file = input(&records);
    let failed = TestJob::new(1 << 20, |env| {
        let records = env.read_text(file.path()).map(parsed);
        let keyed = records.key_by(|_| 0_u8);
        let seen = keyed.fold(
            Vec::new(),
            |seen: &mut Vec<Record>, record| seen.push(record.clone()),
            Extend::extend,
        );
        seen.map(|(_, seen)| seen.len()).write_csv("/out")
    })
    .lines()
    .unwrap_err();
    assert!(failed.to_string().contains("taskmanager.memory.task.size"), "{failed}");
}

#[test]
fn floats_are_summed_and_keys_may_be_numbers() {
    let file = input(&[("a".to_owned(), 1), ("bb".to_owned(), 2), ("cc".to_owned(), 3)]);
    let found = lines(1 << 20, |env| {
        let records = env.read_text(file.path()).map(parsed);
        let keyed = records.key_by(|record| record.0.len() as u64);
        keyed.sum(|record| f64::from(i32::try_from(record.1).unwrap()) / 2.0).write_csv("/out")
    });
    assert_eq!(found, ["1,0.5", "2,2.5"]);
}
