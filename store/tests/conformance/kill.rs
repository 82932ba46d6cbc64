//! A writer is killed at random moments: what it acknowledged is there, and nothing invalid.

use std::{
    io::{BufRead, BufReader, Write, stdout},
    path::Path,
    process::{Command, Stdio},
};

use proptest::{
    prelude::Rng,
    test_runner::{RngAlgorithm, TestRng},
};
use regrow_protocol::Epoch;
use regrow_store::LogDamage;

use crate::fixture::{Fixture, Kind, RUN, batch};

const LIVES: u32 = 12;
const APPENDS_MAX: u32 = 60;
const DIRECTORY: &str = "REGROW_STORE_KILL_TEST_DIRECTORY";
const LIFE: &str = "REGROW_STORE_KILL_TEST_LIFE";

#[test]
fn file_keeps_what_it_acknowledged_before_kill_9() {
    kill_again_and_again(Kind::File, "kill::file_keeps_what_it_acknowledged_before_kill_9");
}

#[test]
fn sled_keeps_what_it_acknowledged_before_kill_9() {
    kill_again_and_again(Kind::Sled, "kill::sled_keeps_what_it_acknowledged_before_kill_9");
}

// The same test is the writer, when it is started with a directory.
fn kill_again_and_again(kind: Kind, test: &str) {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let life = std::env::var(LIFE).unwrap().parse().unwrap();
        return write_until_killed(kind, Path::new(&directory), life);
    }
    let fixture = Fixture::new(kind);
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut acknowledged = 0;
    for life in 0..LIVES {
        let appends = random.next_u32() % APPENDS_MAX;
        acknowledged = acknowledged.max(run_and_kill(&fixture.path(), test, life, appends));
        let log = fixture.open().read_log(RUN).unwrap();
        let count = log.batches.len() as u64;
        assert!(count >= acknowledged, "life {life}: {count} of {acknowledged} are there");
        for (number, read) in log.batches.iter().enumerate() {
            assert_eq!(read.bytes, batch(number as u64), "life {life}");
            assert!(!read.follows_damage, "life {life}");
        }
        if let Some(damage) = log.damage {
            assert_eq!(damage.reason, LogDamage::INCOMPLETE_END, "life {life}");
            assert_eq!(damage.sequence, count, "life {life}");
        }
    }
    assert!(acknowledged > 0);
}

fn run_and_kill(directory: &Path, test: &str, life: u32, appends: u32) -> u64 {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(LIFE, life.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let mut acknowledged = 0;
    let mut seen = 0;
    let mut killed = false;
    // After the kill, what is left in the pipe was acknowledged too.
    for line in lines.map_while(Result::ok) {
        let Some(count) = line.strip_prefix("acknowledged ") else { continue };
        acknowledged = count.parse().unwrap();
        seen += 1;
        if seen > appends && !killed {
            writer.kill().unwrap();
            killed = true;
        }
    }
    writer.wait().unwrap();
    assert!(killed, "the writer ended by itself");
    acknowledged
}

fn write_until_killed(kind: Kind, directory: &Path, life: u32) {
    let mut store = kind.open(directory);
    let epoch = Epoch::new(1, life);
    let log = store.open_log(RUN, epoch).unwrap();
    let mut count = log.batches.len() as u64;
    let mut lines = stdout().lock();
    writeln!(lines).unwrap();
    loop {
        writeln!(lines, "acknowledged {count}").unwrap();
        let position = store.append(RUN, epoch, &batch(count)).unwrap();
        assert_eq!(position.sequence, count);
        count += 1;
    }
}
