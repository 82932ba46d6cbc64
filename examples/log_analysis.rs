//! A complete program: how much each country loads, from an access log and a list of users.
//!
//! ```sh
//! cargo run --release --example log_analysis -- run traffic \
//!     --log examples/data/access_log.csv --users examples/data/users.csv --output /tmp/traffic
//! ```

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use regrow::prelude::*;
use serde::{Deserialize, Serialize};

/// Sums the traffic of each country
#[derive(Args, Serialize, Deserialize)]
struct Arguments {
    /// CSV with the columns user, status and bytes, among others
    #[arg(long)]
    log: PathBuf,
    /// CSV with the columns id and country, among others
    #[arg(long)]
    users: PathBuf,
    /// Directory for the result
    #[arg(long)]
    output: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Visit {
    user: String,
    status: u16,
    bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct User {
    id: String,
    country: String,
}

fn main() -> ExitCode {
    regrow::program()
        .job("traffic", |env, args: Arguments| {
            env.read_csv::<Visit>(&args.log)
                .filter(|visit| visit.status < 400)
                .left_join(env.read_csv::<User>(&args.users))
                .on_ref(|visit| &visit.user[..], |user| &user.id[..])
                .map(|visit, user| {
                    (user.map_or("unknown", |user| &user.country).to_owned(), visit.bytes)
                })
                .key_by_ref(|(country, _)| &country[..])
                .sum(|(_, bytes)| *bytes)
                .write_csv_with(&args.output, CsvOptions::default().header(["country", "bytes"]))
        })
        .run()
}
