//! Regrow as a library: a program that runs a job without the command line.
//!
//! ```sh
//! cargo run --release --example library_use -- examples/data/king_james_bible.txt /tmp/counts
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::{error::Error, path::PathBuf};

use regrow::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Paths {
    input: PathBuf,
    output: PathBuf,
}

/// Writes how often each word occurs, and gives some of the frequent ones back. The same function
/// could be a job of a `regrow::program()`.
fn word_count(env: &Environment, paths: Paths) -> (Written, Written) {
    let counts = || {
        env.read_text(&paths.input)
            .flat_map_text(|line, out| out.emit_lowercase_words(line))
            .count_by_key()
    };
    let header = CsvOptions::default().header(["word", "count"]);
    let frequent = counts().filter(|(_, count)| *count > 1);
    (counts().write_csv_with(&paths.output, header), frequent.collect("frequent", 3))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let input = arguments.next().ok_or("name a text file, and a directory for the counts")?;
    let output = arguments.next().ok_or("name a directory for the counts")?;
    // With a directory that stays, a run that was interrupted would go on where it was.
    let data = tempfile::tempdir()?;
    let result = regrow::local()
        .data_directory(&data)
        .job_id("count-words")
        .kill_jobmaster_at("50%")
        .on_progress(|update| {
            if let RunUpdate::Recovered(report) = update {
                println!("the coordinator came back; {} tasks were looked at", report.lines.len());
            }
        })
        .run(Job::new("word count", Paths { input, output }, word_count))?;
    println!("{} after {} recovery", result.state, result.recoveries);
    for (word, count) in result.collected::<(String, u64)>("frequent")? {
        println!("{word}: {count}");
    }
    Ok(())
}
