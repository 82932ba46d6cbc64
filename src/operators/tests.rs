//! Operators in a job, from lines to CSV.

use regrow_runtime::Determinacy;

use super::{Emitter, PartitionFunction};
use crate::{environment::Environment, test_job::TestJob};

fn input(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn sorted_lines<T>(build: impl FnOnce(&Environment) -> T) -> Vec<String> {
    let mut lines = TestJob::new(1 << 20, build).lines().unwrap();
    lines.sort();
    lines
}

#[test]
fn records_go_through_a_chain_of_functions() {
    let file = input("3 apples\n\n1 pear\n12 plums\n");
    let found = sorted_lines(|env| {
        env.read_text(file.path())
            .filter(|line| !line.is_empty())
            .map(|line| {
                let (count, fruit) = line.split_once(' ').unwrap();
                (fruit.to_owned(), count.parse::<u64>().unwrap())
            })
            .filter(|(_, count)| *count > 1)
            .flat_map(|(fruit, count), out| {
                for half in 1..=2 {
                    out.emit((fruit.to_uppercase(), half * count));
                }
            })
            .write_csv("/out")
    });
    assert_eq!(found, ["APPLES,3", "APPLES,6", "PLUMS,12", "PLUMS,24"]);
}

#[test]
fn a_union_holds_what_both_sides_hold() {
    let (first, second) = (input("a\nb\n"), input("b\nc\n"));
    let found = sorted_lines(|env| {
        let single = env.read_text(first.path()).map(str::to_owned);
        let double = env.read_text(second.path()).map(|line| format!("{line}{line}"));
        single.union(double).map(|line| (line.clone(), line.len())).write_csv("/out")
    });
    assert_eq!(found, ["a,1", "b,1", "bb,2", "cc,2"]);
}

struct Longest(String);

impl PartitionFunction<str> for Longest {
    type Output = String;

    fn record(&mut self, record: &str, _: &mut Emitter<String>) {
        if record.len() > self.0.len() {
            record.clone_into(&mut self.0);
        }
    }

    fn end(&mut self, out: &mut Emitter<String>) {
        out.emit(std::mem::take(&mut self.0));
    }
}

#[test]
fn a_partition_function_keeps_a_state_and_learns_of_the_end() {
    let file = input("one\nthree\nfour\n");
    let found = sorted_lines(|env| {
        env.read_text(file.path())
            .map_partition(|| Longest(String::new()))
            .filter(|longest| !longest.is_empty())
            .write_csv("/out")
    });
    assert_eq!(found, ["three"]);
}

#[test]
fn a_chain_is_determinate_until_someone_says_otherwise() {
    let environment = Environment::new(None, false);
    let lines = || environment.read_text("/in").map(str::len);
    let _ = lines().write_csv("/plain");
    let _ = lines().indeterminate().filter(|length| *length > 0).write_csv("/chance");
    let determinacy = environment.into_job().graph.vertices.into_iter().map(|v| v.determinacy);
    assert_eq!(
        determinacy.collect::<Vec<_>>(),
        [Determinacy::Determinate, Determinacy::Indeterminate]
    );
}
