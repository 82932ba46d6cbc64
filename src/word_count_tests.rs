//! The chain of a word count, from text to CSV, without a cluster.

use std::{collections::BTreeMap, path::Path};

use proptest::prelude::*;
use regrow_protocol::{SubpartitionRange, TaskFailure};

use crate::{environment::Environment, jobs::word_count, test_context::TestContext};

/// Counts the words of `input` with `producers` tasks, which take splits in turn, and one consumer
/// per subpartition; gives the lines of CSV, and how often a consumer spilled.
fn count(input: &Path, producers: u32, memory_bytes: u64) -> Result<Vec<String>, TaskFailure> {
    let environment = Environment::new(None, false);
    let output = Path::new("/output").to_owned();
    let arguments = word_count::WordCount { input: input.to_owned(), output };
    word_count::build(&environment, arguments).unwrap();
    let job = environment.into_job();
    let splits = job.operators[0].discover_splits().unwrap().unwrap();
    let mut blocks = vec![Vec::new(); 4];
    for subtask in 0..producers {
        let mut context = TestContext::new(subtask);
        context.deployment.memory_bytes = memory_bytes;
        let own = splits.iter().skip(subtask as usize).step_by(producers as usize);
        context.splits = own.cloned().collect();
        let mut task = job.operators[0].task(&context.deployment)?;
        context.run(&mut *task)?;
        for (index, blocks) in (0..).zip(&mut blocks) {
            blocks.extend(context.subpartition(index).map(<[u8]>::to_vec));
        }
    }
    let mut lines = Vec::new();
    for (subpartition, blocks) in (0..).zip(blocks) {
        let mut context = TestContext::new(subpartition);
        context.deployment.memory_bytes = memory_bytes;
        context
            .read_from(producers, SubpartitionRange { start: subpartition, end: subpartition + 1 });
        context.set_input(0, blocks);
        let mut task = job.operators[1].task(&context.deployment)?;
        context.run(&mut *task)?;
        let text = context.staged_text().unwrap_or_default();
        lines.extend(text.lines().map(str::to_owned));
    }
    lines.sort();
    Ok(lines)
}

fn expected(text: &str) -> Vec<String> {
    let mut counts = BTreeMap::<String, u64>::new();
    for word in text.split_whitespace() {
        *counts.entry(word.to_lowercase()).or_default() += 1;
    }
    let mut lines: Vec<_> = counts.iter().map(|(word, count)| format!("{word},{count}")).collect();
    lines.sort();
    lines
}

#[test]
fn little_memory_gives_the_same_counts_as_much() {
    let directory = tempfile::tempdir().unwrap();
    let word =
        |number: u32| format!("Word{} a-longer-word-than-fits-a-slot-{number}\n", number % 97);
    let text: String = (0..60_000).map(|number| word(number * 7 % 20_011)).collect();
    std::fs::write(directory.path().join("text"), &text).unwrap();
    let expected = expected(&text);
    assert_eq!(count(directory.path(), 2, 64 << 20).unwrap(), expected);
    assert_eq!(count(directory.path(), 2, 1).unwrap(), expected);
}

#[test]
fn a_file_that_is_no_utf_8_fails_for_good_with_its_name_and_offset() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("text"), b"good\nbad \xff\n").unwrap();
    let failure = count(directory.path(), 1, 1 << 20).unwrap_err();
    let TaskFailure::Unrecoverable { message } = &failure else { panic!("{failure}") };
    assert!(message.contains("/text is not valid UTF-8 at byte 9"), "{message}");
}

#[test]
fn an_empty_input_gives_no_file() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(count(directory.path(), 1, 1 << 20).unwrap(), [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn counts_equal_a_plain_count(files in proptest::collection::vec("[aAbB Σσ\u{2003}\r\n]{0,60}", 0..4)) {
        let directory = tempfile::tempdir().unwrap();
        for (number, text) in files.iter().enumerate() {
            std::fs::write(directory.path().join(number.to_string()), text).unwrap();
        }
        prop_assert_eq!(count(directory.path(), 2, 1 << 20).unwrap(), expected(&files.join("\n")));
    }
}
