//! A complete program: sorts the lines of a text by their length, the longest first, and those of
//! one length by their words.
//!
//! ```sh
//! cargo run --release --example sort -- run sort \
//!     --input examples/data/king_james_bible.txt --output /tmp/sorted
//! ```
//! The files of the output, in the order of their names, are sorted as one. What does not fit into
//! the memory of a task (`-D taskmanager.memory.task.size=1mb`) is sorted on disk.

use std::{cmp::Reverse, path::PathBuf, process::ExitCode};

use clap::Args;
use serde::{Deserialize, Serialize};

/// Sorts lines
#[derive(Args, Serialize, Deserialize)]
struct Sort {
    /// Text file, or directory of text files
    #[arg(long)]
    input: PathBuf,
    /// Directory for the result
    #[arg(long)]
    output: PathBuf,
}

fn main() -> ExitCode {
    regrow::program()
        .job("sort", |env, args: Sort| {
            env.read_text(&args.input)
                .filter(|line| !line.is_empty())
                .sort_by_key_parts(|line, key| {
                    key.add(&Reverse(line.len() as u64));
                    key.add(line);
                })
                .write_text(&args.output)
        })
        .run()
}
