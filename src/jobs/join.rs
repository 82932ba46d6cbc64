//! The built-in job `join`.

mod fields;
mod key_column;
mod pad;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, ValueEnum};
use regrow_runtime::Distribution;
use serde::{Deserialize, Serialize};

use self::{
    fields::Fields,
    key_column::{KeyColumn, Wanted},
    pad::{Joined, Pad},
};
use crate::{
    chain::Chain,
    data_set::DataSet,
    environment::{Environment, VertexInput},
    exchange::Forward,
    operators::Prepare,
    sinks::Sinks as _,
    sources::{ColumnCount, CsvFormat},
};

/// Joins two CSV files by a column of each
#[derive(Clone, Debug, PartialEq, Eq, Args, Serialize, Deserialize)]
#[command(after_help = "Examples:
  regrow run join --left visits.csv --right sites.csv --left-key site --right-key name \\
      --header --output joined/
  regrow run join --left a.csv --right b.csv --left-key 2 --right-key 1 --type left --output out/
writes out/part-00000.csv, ... with all columns of the left file, then those of the right one; without
a header, in no order. Fields are text: 1 and 01 are two keys, and an empty key is a key like any other.
The right file is the one that is kept in memory, as far as it fits: let the smaller one be it.")]
pub(crate) struct Join {
    /// CSV file whose columns come first
    #[arg(long, value_name = "FILE")]
    left: PathBuf,
    /// CSV file whose columns come last
    #[arg(long, value_name = "FILE")]
    right: PathBuf,
    /// Column of the left file: its number from 1 or, with --header, its name
    #[arg(long, value_name = "COLUMN")]
    left_key: String,
    /// Column of the right file: its number from 1 or, with --header, its name
    #[arg(long, value_name = "COLUMN")]
    right_key: String,
    /// Pairs only, or left rows without a partner too, with empty fields in place of the right ones
    #[arg(id = "type", long = "type", value_enum, value_name = "TYPE", default_value_t = JoinType::Inner)]
    kind: JoinType,
    /// Both files begin with the names of their columns
    #[arg(long)]
    header: bool,
    /// Directory for the result
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

/// What becomes of rows without a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
enum JoinType {
    /// Only pairs of rows with equal keys
    Inner,
    /// Left rows without a partner too
    Left,
}

/// Builds the job.
pub(crate) fn build(env: &Environment, arguments: Join) -> Result<(), String> {
    let format = CsvFormat::default();
    let format = if arguments.header { format } else { format.without_header() };
    let column = |path: &Path, option, column: &str| {
        let wanted = Wanted::new(option, column, arguments.header)?;
        Ok::<_, String>(Arc::new(KeyColumn::new(env.input(path), format.clone(), wanted)))
    };
    let left_key = column(&arguments.left, "--left-key", &arguments.left_key)?;
    let right_key = column(&arguments.right, "--right-key", &arguments.right_key)?;
    let left = rows(env, &arguments.left, &format, &left_key);
    let right = rows(env, &arguments.right, &format, &right_key);
    let written = match arguments.kind {
        JoinType::Inner => left
            .join(right)
            .on_ref(move |row| row.get(left_key.index()), move |row| row.get(right_key.index()))
            .map(Fields::joined)
            .write_csv(&arguments.output),
        JoinType::Left => {
            let mut joined = left
                .left_join(right)
                .on_ref(move |row| row.get(left_key.index()), move |row| row.get(right_key.index()))
                .map(Joined::new);
            let input = joined.inputs.len();
            joined.inputs.push(column_count(env, &arguments.right, &format));
            joined
                .chained(|chain| Pad::new(chain, input, arguments.right))
                .write_csv(&arguments.output)
        }
    };
    written.accept()
}

/// The rows of a file, once its key column was found.
fn rows<'env>(
    env: &'env Environment,
    path: &Path,
    format: &CsvFormat,
    key: &Arc<KeyColumn>,
) -> DataSet<'env, impl Chain<Item = Fields>> {
    let key = Arc::clone(key);
    env.read_csv_with::<Fields>(path, format.clone())
        .chained(|chain| Prepare::new(chain, move || key.find()))
}

/// Counts the columns of a file, once; all tasks that read it get the same number.
fn column_count(env: &Environment, path: &Path, format: &CsvFormat) -> VertexInput {
    let producer = env
        .read_from(ColumnCount::new(env.input(path), format.clone()))
        .with_parallelism(1)
        .end("count_columns", |chain, deployment| {
            chain.task(deployment, Forward::new(deployment, 0))
        });
    VertexInput { producer, distribution: Distribution::Broadcast }
}

#[cfg(test)]
mod tests;
