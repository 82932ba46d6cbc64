//! A complete program: counts the words of a text.
//!
//! ```sh
//! cargo run --release --example word_count -- run wordcount \
//!     --input examples/data/king_james_bible.txt --output /tmp/counts
//! ```

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use serde::{Deserialize, Serialize};

/// Counts words
#[derive(Args, Serialize, Deserialize)]
struct WordCount {
    /// Text file, or directory of text files
    #[arg(long)]
    input: PathBuf,
    /// Directory for the result
    #[arg(long)]
    output: PathBuf,
}

fn main() -> ExitCode {
    regrow::program()
        .job("wordcount", |env, args: WordCount| {
            env.read_text(&args.input)
                .flat_map(|line, out| {
                    line.split_whitespace().for_each(|word| out.emit(word.to_lowercase()));
                })
                .count_by_key()
                .write_csv(&args.output)
        })
        .run()
}
