//! Regrow as a library: jobs that a program runs without the command line.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::{
    collections::BTreeMap,
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
};

use regrow::{LaunchError, LocalRunner, RunUpdate, prelude::*};
use serde::{Deserialize, Serialize};

/// What the jobs of these tests read and write.
#[derive(Clone, Serialize, Deserialize)]
struct Paths {
    input: PathBuf,
    output: PathBuf,
    /// How many counts to collect.
    collected: u64,
}

/// How often words of each length occur.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Lengths(BTreeMap<usize, u64>);

impl Accumulator for Lengths {
    fn merge(&mut self, other: &Self) {
        for (length, count) in &other.0 {
            *self.0.entry(*length).or_default() += count;
        }
    }
}

/// Counts the words of a text, and something about them on the way. While it `fails`, it gets no
/// further than to the counts.
fn word_count(env: &Environment, paths: &Paths, fails: bool) -> (Written, Written) {
    let words = || {
        env.read_text(&paths.input).flat_map_text(|line, out| {
            out.add("lines", 1);
            out.max("longest line", i64::try_from(line.len()).unwrap());
            out.min("shortest line", i64::try_from(line.len()).unwrap());
            for word in line.split_whitespace() {
                *out.accumulator::<Lengths>("lengths").0.entry(word.len()).or_default() += 1;
                out.emit(word);
            }
        })
    };
    let counts = words().count_by_key().map(move |(word, count)| {
        assert!(!fails, "not yet");
        (word.clone(), *count)
    });
    let written = counts.write_csv(&paths.output);
    (written, words().count_by_key().collect("counts", paths.collected))
}

struct Scene {
    root: PathBuf,
    /// Removes the root; none in a child process, which only works there.
    _owned: Option<tempfile::TempDir>,
}

impl Scene {
    fn new() -> Self {
        let owned = tempfile::tempdir().unwrap();
        let root = owned.path().to_owned();
        let lines: Vec<String> = (0..2_000).map(|n| format!("word{} and {n}", n % 7)).collect();
        fs::create_dir(root.join("in")).unwrap();
        for (index, lines) in lines.chunks(250).enumerate() {
            fs::write(root.join(format!("in/{index}.txt")), lines.join("\n")).unwrap();
        }
        Self { root, _owned: Some(owned) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn job_to(&self, output: &str) -> Job {
        self.job_that_may_fail(output, false)
    }

    fn job_that_may_fail(&self, output: &str, fails: bool) -> Job {
        let (input, output) = (self.path("in"), self.path(output));
        let build = move |env: &Environment, paths: Paths| word_count(env, &paths, fails);
        Job::new("count words", Paths { input, output, collected: 1_000_000 }, build)
    }

    fn local<'a>(&self) -> LocalRunner<'a> {
        regrow::local()
            .data_directory(self.path("data"))
            .slots(2)
            .set("execution.batch.adaptive.auto-parallelism.default-source-parallelism", "8")
            .set("restart-strategy.fixed-delay.attempts", "1000000")
    }

    /// The lines of a published output, sorted.
    fn lines(&self, output: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for entry in fs::read_dir(self.path(output)).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(path.extension(), Some("csv".as_ref()), "{}", path.display());
            lines.extend(fs::read_to_string(&path).unwrap().lines().map(str::to_owned));
        }
        lines.sort();
        lines
    }

    /// What the undisturbed job must come to.
    fn check(&self, result: &JobResult, output: &str) {
        assert_eq!((result.state, &result.error), (JobState::Finished, &None));
        let lines = self.lines(output);
        assert_eq!(lines.len(), 7 + 1 + 2_000);
        assert!(lines.contains(&"and,2000".to_owned()));
        let mut collected = result.collected::<(String, u64)>("counts").unwrap();
        collected.sort();
        let as_lines = collected.iter().map(|(word, count)| format!("{word},{count}"));
        assert_eq!(as_lines.collect::<Vec<String>>(), lines);

        // Both branches of the job read the text.
        let accumulators = &result.accumulators;
        assert_eq!(accumulators.sum("lines"), Some(4_000));
        assert_eq!(accumulators.max("longest line"), Some(14));
        assert_eq!(accumulators.min("shortest line"), Some(11));
        let lengths = accumulators.custom::<Lengths>("lengths").unwrap();
        let expected = [(1, 20), (2, 180), (3, 1_800 + 4_000), (4, 2_000), (5, 4_000)];
        assert_eq!(lengths, Lengths(BTreeMap::from(expected)));
    }

    fn check_nothing_left(&self) {
        let left = fs::read_dir(self.path("data/runs")).unwrap().count();
        assert_eq!(left, 0);
    }
}

fn failed(result: Result<JobResult, RunError>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.result().map(|result| result.state), Some(JobState::Failed), "{error}");
    error.to_string()
}

fn refused(result: Result<JobResult, RunError>) -> String {
    let error = result.unwrap_err();
    let RunError::Refused(reason) = error else { panic!("{error:?}") };
    reason
}

#[test]
fn rule_5_4_kills_change_neither_output_nor_accumulators() {
    let scene = Scene::new();
    let undisturbed = scene.local().run(scene.job_to("calm")).unwrap();
    scene.check(&undisturbed, "calm");
    assert_eq!(undisturbed.recoveries, 0);
    let killed = scene
        .local()
        .kill_jobmaster_at("25%")
        .kill_jobmaster_at("50%")
        .kill_jobmaster_at("90%:panic")
        .run(scene.job_to("killed"))
        .unwrap();
    scene.check(&killed, "killed");
    assert_eq!(killed.recoveries, 3);
    let shown = |result: &JobResult| {
        let each = result.accumulators.iter();
        each.map(|(name, value)| (name.to_owned(), value)).collect::<Vec<_>>()
    };
    assert_eq!(shown(&killed), shown(&undisturbed));
    scene.check_nothing_left();
}

/// Begins a run that cannot get beyond its counts, and leaves it when tasks have finished.
fn interrupt(scene: &Scene, job_id: &str, output: &str) {
    let left = catch_unwind(AssertUnwindSafe(|| {
        let leave = |update: &RunUpdate| {
            if let RunUpdate::Status(status) = update
                && status.vertices.iter().map(|vertex| vertex.finished).sum::<u32>() >= 8
            {
                std::panic::resume_unwind(Box::new("the caller leaves"));
            }
        };
        let job = scene.job_that_may_fail(output, true);
        scene.local().job_id(job_id).on_progress(leave).run(job)
    }));
    assert!(left.is_err(), "{left:?}");
}

#[test]
fn rule_1_1_an_interrupted_run_is_resumed_and_a_finished_one_gives_its_result_again() {
    let scene = Scene::new();
    interrupt(&scene, "nightly", "out");
    let other = scene.local().job_id("nightly").run(scene.job_to("elsewhere"));
    assert!(matches!(other, Err(RunError::Launch(LaunchError::OtherJob { .. }))), "{other:?}");

    let mut resumed = false;
    let hear = |update: &RunUpdate| {
        resumed |= matches!(update, RunUpdate::Accepted { resumed: true, .. });
    };
    let run = scene.local().job_id("nightly").on_progress(hear).run(scene.job_to("out"));
    let first = run.unwrap();
    scene.check(&first, "out");
    assert_eq!((first.recoveries, first.was_stored), (1, false));
    assert!(resumed);

    let again = scene.local().job_id("nightly").run(scene.job_to("out")).unwrap();
    scene.check(&again, "out");
    assert_eq!((again.run_id, again.was_stored), (first.run_id, true));
    scene.check_nothing_left();
}

/// Names the directory of a child process, which is this test program again.
const CHILD: &str = "REGROW_LIBRARY_TEST_SCENE";

/// What a child process does: it runs the job until it is killed. Without a scene this is no child.
#[test]
fn child_process() {
    let Some(root) = env::var_os(CHILD) else { return };
    let scene = Scene { root: root.into(), _owned: None };
    let runner = scene.local().job_id("killed").ledger(scene.path("ledger"));
    let ended = runner.run(scene.job_that_may_fail("out", true));
    panic!("the child runs until it is killed: {ended:?}");
}

#[test]
fn rule_5_4_a_killed_process_loses_and_doubles_nothing_that_was_accumulated() {
    let scene = Scene::new();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "child_process"])
        .env(CHILD, &scene.root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ends = || {
        let ledger = fs::read_to_string(scene.path("ledger")).unwrap_or_default();
        ledger.lines().filter(|line| line.ends_with(" end")).count()
    };
    while ends() < 6 {
        assert!(child.try_wait().unwrap().is_none(), "the child runs until it is killed");
        thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = scene.local().job_id("killed").run(scene.job_to("out")).unwrap();
    scene.check(&resumed, "out");
    assert_eq!(resumed.recoveries, 1);
    scene.check_nothing_left();
}

#[test]
fn two_jobs_run_in_one_process_at_the_same_time() {
    let scenes = [Scene::new(), Scene::new()];
    thread::scope(|scope| {
        for scene in &scenes {
            scope.spawn(|| {
                let kills = scene.local().kill_jobmaster_at("50%");
                scene.check(&kills.run(scene.job_to("out")).unwrap(), "out");
                scene.check_nothing_left();
            });
        }
    });
}

#[test]
fn p4_collecting_more_than_the_limit_fails_the_job_with_the_limit() {
    let scene = Scene::new();
    let long = |env: &Environment, paths: Paths| {
        let lines = env.read_text(&paths.input).map(|line| line.repeat(100));
        lines.collect("lines", paths.collected)
    };
    let paths = |collected| Paths { input: scene.path("in"), output: scene.path("out"), collected };
    let error = failed(scene.local().run(Job::new("long", paths(2_000), long)));
    assert!(error.contains("1 mb") && error.contains("\"lines\""), "{error}");
    let few = scene.local().run(Job::new("long", paths(3), long)).unwrap();
    let lines = few.collected::<String>("lines").unwrap();
    assert_eq!(lines, ["word0 and 0", "word1 and 1", "word2 and 2"].map(|line| line.repeat(100)));
    assert!(few.collected::<u64>("lines").is_err());
    scene.check_nothing_left();
}

#[test]
fn an_accumulator_beyond_the_limit_fails_the_job_with_the_limit() {
    let scene = Scene::new();
    let build = |env: &Environment, paths: Paths| {
        let lines = env.read_text(&paths.input).flat_map(|line, out| {
            out.add(&line.repeat(20), 1);
            out.emit(line.len());
        });
        lines.write_text(&paths.output)
    };
    let paths = Paths { input: scene.path("in"), output: scene.path("out"), collected: 0 };
    let error = failed(scene.local().run(Job::new("names", paths, build)));
    assert!(error.contains(&regrow::ACCUMULATOR_BYTES_MAX.to_string()), "{error}");
    assert!(!scene.path("out").exists());
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let scene = Scene::new();
    fs::write(scene.path("file"), "").unwrap();
    let result = scene.local().run(scene.job_to("file/out"));
    assert!(result.unwrap_err().to_string().contains("/file is a file and no directory"));
}

#[test]
fn an_output_in_use_is_refused_before_anything_runs_unless_it_may_be_replaced() {
    let scene = Scene::new();
    let old = scene.path("out/part-00077.csv");
    fs::create_dir(scene.path("out")).unwrap();
    fs::write(&old, "old\n").unwrap();
    let reason = refused(scene.local().run(scene.job_to("out")));
    assert!(reason.contains("is not empty") && reason.contains("part-00077.csv"), "{reason}");
    assert_eq!(fs::read_to_string(&old).unwrap(), "old\n");
    let result = scene.local().overwrite(true).run(scene.job_to("out")).unwrap();
    scene.check(&result, "out");
    assert!(!old.exists());
}

#[test]
fn an_input_in_the_output_directory_is_never_replaced() {
    let scene = Scene::new();
    let reason = refused(scene.local().overwrite(true).run(scene.job_to("in")));
    assert!(reason.contains("holds the input"), "{reason}");
    assert_eq!(fs::read_dir(scene.path("in")).unwrap().count(), 8);
}

#[test]
fn nonsense_is_refused_with_what_to_do() {
    let scene = Scene::new();
    let refused = |runner: LocalRunner<'_>| refused(runner.run(scene.job_to("out")));
    assert!(refused(scene.local().set("no-such.key", "1")).contains("no-such.key"));
    assert!(refused(scene.local().job_id("a/b")).contains("a/b"));
    assert!(refused(scene.local().kill_jobmaster_at("soon")).contains("soon"));
    assert!(refused(scene.local().slots(0)).contains("1 to 1024"));
    let nothing = Job::new("nothing", 0, |_: &Environment, _: u8| Vec::<Written>::new());
    let RunError::Refused(reason) = scene.local().run(nothing).unwrap_err() else {
        panic!("it is refused");
    };
    assert!(reason.contains("writes nothing"), "{reason}");
    assert!(!scene.path("data").exists());
}

#[test]
fn a_cancelled_run_is_an_error_of_its_own() {
    let scene = Scene::new();
    let cancel = CancelHandle::default();
    cancel.cancel();
    let error = scene.local().cancelled_by(&cancel).run(scene.job_to("out")).unwrap_err();
    assert!(matches!(&error, RunError::Canceled(_)), "{error}");
    scene.check_nothing_left();
}
