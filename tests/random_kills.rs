//! `kill -9` of the whole process at random moments. `REGROW_KILLS` is how many, `REGROW_SEED`
//! repeats a run.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::expect_used,
    reason = "helpers of tests"
)]

#[expect(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a helper of tests, which share it"
)]
#[path = "support/sandbox.rs"]
mod sandbox;

use std::{
    env, fs,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use sandbox::{Sandbox, assert_finished_stays_finished};

/// Kills of each test, unless `REGROW_KILLS` says otherwise.
const KILLS: u64 = 4;

/// Random moments, after xorshift64.
struct Moments(u64);

impl Moments {
    fn new() -> Self {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let seed = number("REGROW_SEED").unwrap_or_else(|| u64::try_from(now()).unwrap());
        println!("repeat with REGROW_SEED={seed}");
        Self(seed | 1)
    }

    fn within(&mut self, span: Duration) -> Duration {
        Duration::from_micros(self.below(u64::try_from(span.as_micros()).unwrap()))
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().expect("it is a number"))
}

/// Starts `line` and kills it at a random moment, again and again, then lets it run to its end.
fn run_through_kills(sandbox: &Sandbox, line: &str, span: Duration) {
    let mut moments = Moments::new();
    for _ in 0..number("REGROW_KILLS").unwrap_or(KILLS) {
        let mut running = sandbox.start(&format!("{line} --quiet"));
        if running.ends_within(moments.within(span)) {
            break;
        }
        running.kill();
        let verified = sandbox.regrow("store verify --data-dir .regrow x");
        // A run that was killed in its first moments has no store yet, one in its last no more.
        assert!(matches!(verified.code, Some(0 | 2)), "{verified:?}");
    }
    let answer = sandbox.fine(&format!("{line} --json"));
    assert_eq!(answer.json()["state"], "FINISHED");
    assert_finished_stays_finished(&sandbox.ledger("ledger"));
    sandbox.assert_nothing_left();
}

#[test]
fn p1_p2_stages_survive_kills_of_the_process() {
    for kind in ["sled", "file"] {
        let sandbox = Sandbox::new();
        let line = format!(
            "run stages --stage 10x50ms --stage 10x50ms --stage 2x50ms --bytes 200kb --slots 2 \
             --splits 20 --ledger ledger --job-id x -D job-event.store.type={kind}"
        );
        run_through_kills(&sandbox, &line, Duration::from_millis(500));
    }
}

/// A word count with many tasks and many output files.
fn word_count(sandbox: &Sandbox) -> String {
    sandbox.fine("generate text --bytes 1mb --output text");
    "run wordcount --input text --output counts --slots 2 --ledger ledger --job-id x \
     -D execution.batch.adaptive.auto-parallelism.default-source-parallelism=24 \
     -D execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task=2kb"
        .to_owned()
}

#[test]
fn p1_p2_word_count_survives_kills_of_the_process() {
    let sandbox = Sandbox::new();
    let line = word_count(&sandbox);
    run_through_kills(&sandbox, &line, Duration::from_millis(700));
    assert_eq!(sandbox.output("counts"), sandbox.counted("text"));
    assert!(sandbox.published("counts").len() > 10);
}

/// Harms the store of a killed run in one of many ways.
fn harm(sandbox: &Sandbox, moments: &mut Moments) {
    let store = sandbox.path(".regrow/runs/x/store");
    let files = sandbox.files(".regrow/runs/x/store", "/");
    let mut below = |end: usize| moments.below(u64::try_from(end).unwrap());
    match below(4) {
        // What was killed in its first moments has nothing to be harmed.
        0 => drop(fs::remove_dir_all(store)),
        1 => drop(fs::write(store.join("FORMAT"), "harmed")),
        2 if !files.is_empty() => {
            let file = &files[usize::try_from(below(files.len())).unwrap()];
            let bytes = fs::read(file).unwrap();
            fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
        }
        _ => {}
    }
}

#[test]
fn p2_word_count_survives_kills_and_what_is_done_to_its_store() {
    for kind in ["sled", "file", "memory"] {
        let sandbox = Sandbox::new();
        let line = format!("{} -D job-event.store.type={kind}", word_count(&sandbox));
        let mut moments = Moments::new();
        for _ in 0..number("REGROW_KILLS").unwrap_or(KILLS) {
            let mut running = sandbox.start(&format!("{line} --quiet"));
            if running.ends_within(moments.within(Duration::from_millis(700))) {
                break;
            }
            running.kill();
            harm(&sandbox, &mut moments);
        }
        let answer = sandbox.fine(&format!("{line} --json"));
        assert_eq!(answer.json()["state"], "FINISHED");
        assert_eq!(sandbox.output("counts"), sandbox.counted("text"));
        sandbox.assert_nothing_left();
    }
}

#[test]
fn p1_p2_a_sort_survives_kills_of_the_process() {
    let sandbox = Sandbox::new();
    sandbox.fine("generate records --size 4mb --output records");
    let line = "run sort --input records --output sorted --slots 2 --ledger ledger --job-id x \
                -D execution.batch.adaptive.auto-parallelism.default-source-parallelism=8 \
                -D execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task=256kb";
    run_through_kills(&sandbox, line, Duration::from_millis(700));
    let summary = |line: &str| {
        let found = sandbox.fine(line).json();
        (found["records"].clone(), found["checksum"].clone())
    };
    let input = summary("verify checksum records --json");
    assert_eq!(summary("verify sorted sorted --json"), input);
}

#[test]
fn rule_6_2_a_process_killed_in_mid_commit_publishes_each_file_once() {
    for step in ["manifest", "part-00000.csv"] {
        let sandbox = Sandbox::new();
        let line = word_count(&sandbox);
        let running = sandbox.start(&format!("{line} --quiet"));
        sandbox.wait_for_commit("counts", step);
        running.kill();
        sandbox.fine(&line);
        assert_eq!(sandbox.output("counts"), sandbox.counted("text"));
        assert_finished_stays_finished(&sandbox.ledger("ledger"));
        sandbox.assert_nothing_left();
    }
}
