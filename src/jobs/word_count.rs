//! The built-in job `wordcount`.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::{environment::Environment, sinks::Sinks as _};

/// Counts words: what stands between white space, in lower case
#[derive(Clone, Debug, PartialEq, Eq, Args, Serialize, Deserialize)]
#[command(after_help = "Example:
  regrow run wordcount --input books/ --output counts/
writes counts/part-00000.csv, ... with lines `word,count`. Text must be UTF-8.")]
pub(crate) struct WordCount {
    /// Text file, directory of text files, or pattern like 'logs/*.txt'; .gz files are decompressed
    #[arg(long, value_name = "PATH")]
    pub(crate) input: PathBuf,
    /// Directory for the result
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

/// Builds the job.
pub(crate) fn build(env: &Environment, arguments: WordCount) -> Result<(), String> {
    env.read_text(&arguments.input)
        .flat_map_text(|line, out| out.emit_lowercase_words(line))
        .count_by_key()
        .write_csv(&arguments.output)
        .accept()
}
