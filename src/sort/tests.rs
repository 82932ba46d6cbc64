//! The sort in a job, over several tasks.

use std::cmp::Reverse;

use proptest::prelude::*;
use regrow_protocol::TaskFailure;

use crate::{environment::Environment, test_job::TestJob};

fn input(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn lines<T>(memory_bytes: u64, build: impl FnOnce(&Environment) -> T) -> Vec<String> {
    TestJob::new(memory_bytes, build).lines().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn all_files_together_are_as_the_standard_sort_has_them(
        mut words in proptest::collection::vec("[a-c]{1,3}", 0..300),
        memory_bytes in prop_oneof![Just(1_u64), Just(1 << 20)],
    ) {
        let file = input(&words.join("\n"));
        words.retain(|word| !word.is_empty());
        words.sort();
        let of_source = lines(memory_bytes, |env| {
            env.read_text(file.path()).sort_by_key_parts(|line, key| key.add(line)).write_csv("/out")
        });
        prop_assert_eq!(&of_source, &words);
        let of_vertex = lines(memory_bytes, |env| {
            let words = env.read_text(file.path()).map(str::to_owned);
            let none = env.read_text(file.path()).filter(|_| false).map(str::to_owned);
            words.union(none).sort_by_key(String::clone).write_csv("/out")
        });
        prop_assert_eq!(&of_vertex, &words);
    }
}

#[test]
fn records_of_one_key_come_in_a_fixed_order_and_in_several_files() {
    let mut numbers: Vec<u32> = (0..10_000).map(|n| n * 7919 % 10_007).collect();
    let text: Vec<String> = numbers.iter().map(|n| format!("{n:05}")).collect();
    let file = input(&text.join("\n"));
    let files =
        TestJob::new(1, |env| env.read_text(file.path()).sort_by_key(|_| 0_u8).write_csv("/out"))
            .files()
            .unwrap();
    let names: Vec<&str> = files.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!(names, ["part-00000.csv", "part-00001.csv", "part-00002.csv"]);
    assert!(files.iter().all(|(_, _, content)| content.len() > 10_000), "uneven files");
    let found: Vec<u8> = files.into_iter().flat_map(|(_, _, content)| content).collect();
    numbers.sort_unstable();
    let expected: Vec<String> = numbers.iter().map(|n| format!("{n:05}")).collect();
    assert!(String::from_utf8(found).unwrap().lines().eq(expected));
}

#[test]
fn records_that_are_all_the_same_are_spread() {
    let file = input(&"same\n".repeat(9_000));
    let build = |env: &Environment| {
        env.read_text(file.path()).sort_by_key_parts(|line, key| key.add(line)).write_csv("/out")
    };
    let files = TestJob::new(1 << 20, |env| build(env)).files().unwrap();
    let sizes: Vec<usize> = files.iter().map(|(_, _, content)| content.len()).collect();
    assert_eq!(sizes, [15_000; 3]);
}

#[test]
fn structs_are_sorted_by_parts_of_them_either_way() {
    let file = input("b 1\na 2\nb 3\na 1\nb 2\n");
    let found = lines(1 << 20, |env| {
        env.read_text(file.path())
            .map(|line| {
                let (name, number) = line.split_once(' ').unwrap();
                (name.to_owned(), number.parse::<i64>().unwrap())
            })
            .sort_by_key_parts(|(name, number), key| {
                key.add(name);
                key.add(&Reverse(*number));
            })
            .map(|(name, number)| format!("{name}{number}"))
            .write_csv("/out")
    });
    assert_eq!(found, ["a2", "a1", "b3", "b2", "b1"]);
}

#[test]
fn a_sort_of_what_was_sorted_and_of_nothing_is_fine() {
    let file = input("c\na\nb\n");
    let found = lines(1 << 20, |env| {
        env.read_text(file.path())
            .sort_by_key(|line| Reverse(line.to_owned()))
            .sort_by_key_parts(|line, key| key.add(line))
            .write_csv("/out")
    });
    assert_eq!(found, ["a", "b", "c"]);
    let empty = input("");
    let found = lines(1 << 20, |env| {
        env.read_text(empty.path()).sort_by_key(|line| line.len() as u64).write_csv("/out")
    });
    assert!(found.is_empty());
}

#[test]
fn a_record_that_cannot_be_sorted_fails_the_job_for_good() {
    let file = input("a\n");
    let job = TestJob::new(1 << 20, |env| {
        env.read_text(file.path()).map(|_| ()).sort_by_key(|()| 0_u8).write_csv("/out")
    });
    assert!(matches!(job.lines(), Err(TaskFailure::Unrecoverable { .. })));
}

#[test]
fn p2_what_functions_count_before_a_sort_counts_once() {
    let file = input("c\na\nb\n");
    let job = TestJob::new(1 << 20, |env| {
        env.read_text(file.path())
            .flat_map(|line, out| {
                out.add("lines", 1);
                out.emit(line.to_owned());
            })
            .sort_by_key(String::clone)
            .write_csv("/out")
    });
    let found = job.accumulators().unwrap();
    assert_eq!(found.get("lines"), Some(&regrow_protocol::Accumulator::Sum(3)));
}
