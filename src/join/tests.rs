//! Joins, against loops over all pairs.

use std::fmt::Write as _;

use proptest::prelude::*;
use regrow_actors::task::TaskContext;
use regrow_protocol::TaskFailure;

use super::{
    hash_join::HashJoin,
    join_output::{JoinOutput, Side},
    row::Row,
    row_arena::Rows,
};
use crate::{environment::Environment, test_context::TestContext, test_job::TestJob};

/// Key and rest of a line.
type Line = (String, String);

fn input(lines: &[Line]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut text = String::new();
    for (key, rest) in lines {
        writeln!(text, "{key} {rest}").unwrap();
    }
    std::fs::write(file.path(), text).unwrap();
    file
}

fn parsed(line: &str) -> Line {
    let (key, rest) = line.split_once(' ').unwrap();
    (key.to_owned(), rest.to_owned())
}

/// Runs a job twice, which must give the same; gives its lines, sorted.
fn lines<T>(memory: u64, build: impl Fn(&Environment) -> T) -> Vec<String> {
    let mut first = TestJob::new(memory, &build).lines().unwrap();
    assert_eq!(TestJob::new(memory, &build).lines().unwrap(), first);
    first.sort();
    first
}

fn key(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

/// Lines of few keys, some of them long; together up to some times the memory that a table takes at
/// least.
fn some_lines(side: &'static str) -> impl Strategy<Value = Vec<Line>> {
    let line = (0_usize..40, 0_usize..900).prop_map(move |(key, length)| {
        (format!("{key}{}", "-".repeat(key % 20)), format!("{side}{}", "x".repeat(length)))
    });
    proptest::collection::vec(line, 0..400)
}

fn pairs<'a>(left: &'a [Line], right: &'a [Line]) -> impl Iterator<Item = (&'a Line, &'a Line)> {
    left.iter().flat_map(|left| {
        right.iter().filter(|right| right.0 == left.0).map(move |right| (left, right))
    })
}

fn length(line: &Line) -> usize {
    line.0.len() + 1 + line.1.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]
    #[test]
    fn an_inner_join_gives_all_pairs_of_equal_keys(
        left in some_lines("l"), right in some_lines("r"), memory in 1_u64..900_000,
    ) {
        let files = (input(&left), input(&right));
        let found = lines(memory, |env| {
            let right = env.read_text(files.1.path());
            let joined = env.read_text(files.0.path()).join(right).on_ref(key, key);
            joined.map(|left, right| (key(left).to_owned(), left.len(), right.len())).write_csv("/out")
        });
        let mut expected: Vec<String> = pairs(&left, &right)
            .map(|(left, right)| format!("{},{},{}", left.0, length(left), length(right)))
            .collect();
        expected.sort();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_left_join_gives_what_has_no_partner_too(
        left in some_lines("l"), right in some_lines("r"), memory in 1_u64..900_000,
        kept in 0_usize..40,
    ) {
        let right: Vec<Line> = right.into_iter().filter(|line| line.0.len() * 7 % 40 < kept).collect();
        let files = (input(&left), input(&right));
        let found = lines(memory, |env| {
            let right = env.read_text(files.1.path()).map(parsed);
            let left = env.read_text(files.0.path()).map(parsed);
            left.left_join(right)
                .on(|left| (left.0.clone(), 1_u8), |right| (right.0.clone(), 1_u8))
                .map(|left, right| (left.0.clone(), length(left), right.map_or(0, length)))
                .write_csv("/out")
        });
        let alone = left.iter().filter(|left| right.iter().all(|right| right.0 != left.0));
        let mut expected: Vec<String> = pairs(&left, &right)
            .map(|(left, right)| format!("{},{},{}", left.0, length(left), length(right)))
            .chain(alone.map(|left| format!("{},{},0", left.0, length(left))))
            .collect();
        expected.sort();
        prop_assert_eq!(found, expected);
    }
}

/// Numbers of pairs: left row and right row, or left row alone.
struct Collected<const KEEPS_LEFT: bool> {
    pairs: Vec<(u32, Option<u32>)>,
}

fn number(row: &[u8]) -> u32 {
    u32::from_le_bytes(*row.first_chunk().unwrap())
}

impl<const KEEPS_LEFT: bool> JoinOutput for Collected<KEEPS_LEFT> {
    const KEEPS_LEFT: bool = KEEPS_LEFT;

    fn pairs(
        &mut self,
        side: Side,
        row: &[u8],
        partners: Rows<'_>,
        _: &mut dyn TaskContext,
    ) -> Result<(), TaskFailure> {
        for partner in partners {
            self.pairs.push(match side {
                Side::Left => (number(row), Some(number(partner))),
                Side::Right => (number(partner), Some(number(row))),
            });
        }
        Ok(())
    }

    fn alone(&mut self, left: &[u8], _: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.pairs.push((number(left), None));
        Ok(())
    }
}

/// Gives rows of these keys, each of 1000 bytes and numbered, to a join in the least memory.
fn pushed<const KEEPS_LEFT: bool>(
    left: &[u32],
    right: &[u32],
    context: &mut TestContext,
) -> HashJoin<Collected<KEEPS_LEFT>> {
    let mut join = HashJoin::new(Collected { pairs: Vec::new() }, 1);
    join.partitions.marks_max = 7;
    for (side, keys) in [(Side::Right, right), (Side::Left, left)] {
        for (number, key) in (0_u32..).zip(keys) {
            let mut record = number.to_le_bytes().to_vec();
            record.resize(1000, 0);
            join.push(side, &Row::new(&key.to_le_bytes(), &record), context).unwrap();
        }
    }
    join
}

fn joined<const KEEPS_LEFT: bool>(left: &[u32], right: &[u32]) -> Vec<(u32, Option<u32>)> {
    let mut context = TestContext::new(0);
    let join = pushed::<KEEPS_LEFT>(left, right, &mut context);
    let mut pairs = join.finish(&mut context).unwrap().pairs;
    let left_over = std::fs::read_dir(context.spill_directory().unwrap()).unwrap().count();
    assert_eq!(left_over, 0, "files of the join");
    pairs.sort_unstable();
    pairs
}

fn expected<const KEEPS_LEFT: bool>(left: &[u32], right: &[u32]) -> Vec<(u32, Option<u32>)> {
    let mut pairs = Vec::new();
    for (left_number, left) in (0_u32..).zip(left) {
        let before = pairs.len();
        let partners = (0_u32..).zip(right).filter(|(_, right)| *right == left);
        pairs.extend(partners.map(|(number, _)| (left_number, Some(number))));
        if KEEPS_LEFT && pairs.len() == before {
            pairs.push((left_number, None));
        }
    }
    pairs
}

fn check(left: &[u32], right: &[u32]) {
    assert_eq!(joined::<false>(left, right), expected::<false>(left, right));
    assert_eq!(joined::<true>(left, right), expected::<true>(left, right));
}

#[test]
fn a_key_that_does_not_fit_is_joined_in_passes() {
    let (few, many) = (vec![7; 20], vec![7; 700]);
    check(&few, &many);
    check(&many, &few);
    check(&[7, 8, 7, 9, 8], &many);
}

#[test]
fn many_keys_beyond_memory_are_divided_more_than_once() {
    let left: Vec<u32> = (0..1_500).map(|number| number * 2).collect();
    let right: Vec<u32> = (0..2_500).collect();
    check(&left, &right);
    check(&right, &left);
}

#[test]
fn a_hot_key_among_others_and_sides_without_rows_are_joined() {
    let mut mixed: Vec<u32> = (0..600).collect();
    mixed.extend([5; 300]);
    check(&mixed, &[5, 5, 6, 7_000]);
    check(&[5, 5, 6, 7_000], &mixed);
    check(&[], &mixed);
    check(&mixed, &[]);
    check(&mixed, &mixed[400..]);
}

#[test]
fn a_row_that_was_damaged_on_disk_fails_the_attempt() {
    let mut context = TestContext::new(0);
    let keys: Vec<u32> = (0..600).collect();
    let join = pushed::<false>(&keys, &keys, &mut context);
    let directory = context.spill_directory().unwrap();
    let file = directory.join("join-1.rows");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let Err(failure) = join.finish(&mut context) else { panic!("it was believed") };
    assert!(matches!(&failure, TaskFailure::Task { .. }), "{failure:?}");
    assert!(failure.to_string().contains("wrong checksum"), "{failure}");
}

#[test]
fn rows_of_an_odd_size_are_joined() {
    let mut context = TestContext::new(0);
    let mut join = HashJoin::new(Collected::<true> { pairs: Vec::new() }, 1);
    let (small, large) = ([1_u8; 4], vec![1_u8; 1 << 20]);
    for side in [Side::Right, Side::Left] {
        for record in [&small[..], &large[..], &small[..]] {
            join.push(side, &Row::new(b"", record), &mut context).unwrap();
        }
    }
    assert_eq!(join.finish(&mut context).unwrap().pairs.len(), 9);
}
