//! An accumulator of one's own: how long are the lines of a text?
//!
//! ```sh
//! cargo run --release --example custom_accumulator -- examples/data/king_james_bible.txt
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::{collections::BTreeMap, error::Error};

use regrow::prelude::*;
use serde::{Deserialize, Serialize};

/// How many lines there are, by length in steps of ten.
#[derive(Default, Serialize, Deserialize)]
struct Histogram(BTreeMap<usize, u64>);

impl Accumulator for Histogram {
    fn merge(&mut self, other: &Self) {
        for (length, lines) in &other.0 {
            *self.0.entry(*length).or_default() += lines;
        }
    }
}

/// Collects lines that shout, and counts all of them on the way.
fn lines(env: &Environment, input: String) -> Written {
    env.read_text(&input)
        .flat_map(|line, out| {
            out.add("lines", 1);
            let steps = line.chars().count() / 10;
            *out.accumulator::<Histogram>("lengths").0.entry(steps * 10).or_default() += 1;
            if line.ends_with('!') {
                out.emit(line.to_owned());
            }
        })
        .collect("shouting", 3)
}

fn main() -> Result<(), Box<dyn Error>> {
    let input = std::env::args().nth(1).ok_or("name a text file")?;
    let data = tempfile::tempdir()?;
    // The coordinator dies half-way: each task still counts once.
    let result = regrow::local()
        .data_directory(&data)
        .kill_jobmaster_at("50%")
        .run(Job::new("lines", input, lines))?;
    println!("{} lines", result.accumulators.sum("lines").unwrap_or(0));
    for (length, lines) in result.accumulators.custom::<Histogram>("lengths")?.0 {
        println!("{length:>4} or more characters: {lines}");
    }
    for line in result.collected::<String>("shouting")? {
        println!("{line}");
    }
    Ok(())
}
