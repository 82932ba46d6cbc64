use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

use regrow_runtime::{JobState, KillWhen, StoreKind};
use tempfile::TempDir;

use super::*;
use crate::{
    archive::Archive,
    test_program::{SPLITS, program},
};

/// A data directory, an output directory and a ledger.
struct Scene {
    root: TempDir,
    store: StoreKind,
}

impl Scene {
    fn new(store: StoreKind) -> Self {
        Self { root: tempfile::tempdir().unwrap(), store }
    }

    fn run(&self, job: &str, trouble: &str) -> LocalRun {
        run_in(self.root.path(), self.store, job, trouble)
    }

    fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// Runs to the end, with the updates.
    fn ended(run: LocalRun) -> (LocalResult, Vec<RunUpdate>) {
        let mut updates = Vec::new();
        let result = run.run(|update| updates.push(update), CancelHandle::default()).unwrap();
        (result, updates)
    }

    fn check_output(&self) {
        let output = self.root.path().join("out");
        let names: BTreeSet<String> = fs::read_dir(&output)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(names.len(), 2, "{names:?}");
        let mut numbers = Vec::new();
        for name in names {
            let text = fs::read_to_string(output.join(name)).unwrap();
            numbers.extend(text.lines().map(|line| line.parse::<u32>().unwrap()));
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..SPLITS).collect::<Vec<u32>>());
    }

    fn check_nothing_left(&self) {
        let runs = fs::read_dir(self.data().join("runs")).unwrap();
        let left: Vec<_> = runs.map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// No attempt starts in a later epoch after one of its subtask ended in an earlier one.
    fn check_ledger(&self, kills: usize) {
        let text = fs::read_to_string(self.root.path().join("ledger")).unwrap();
        let mut ended: BTreeMap<(String, String), u64> = BTreeMap::new();
        let mut started = BTreeSet::new();
        let mut found = 0;
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let epoch: u64 = words[1].parse().unwrap();
            let subtask = (words[2].to_owned(), words[3].to_owned());
            match *words.last().unwrap() {
                "kill" => found += 1,
                "start" => {
                    let before = ended.get(&subtask).filter(|before| **before < epoch);
                    assert_eq!(before, None, "{line} after its end; all:\n{text}");
                    started.insert(subtask);
                }
                "end" => {
                    ended.insert(subtask, epoch);
                }
                other => assert!(other == "failed" || other == "cancelled", "{line}"),
            }
        }
        assert_eq!(found, kills, "{text}");
        // A process may be killed between a seal and the line that tells of it.
        assert_eq!(started.len(), 8, "{text}");
        assert!(ended.len() == 8 || kills == 0, "{text}");
    }
}

fn run_in(root: &Path, store: StoreKind, job: &str, trouble: &str) -> LocalRun {
    LocalRun {
        named: true,
        job: job.parse().unwrap(),
        job_name: "numbers".to_owned(),
        arguments: format!("{}:{trouble}", root.join("out").display()).into_bytes(),
        ledger: Some(root.join("ledger")),
        settings: Vec::new(),
        options: Options { store, restart_delay: Duration::from_millis(10), ..Options::default() },
        data_directory: root.join("data"),
        task_managers: 2,
        slots: 2,
        kills: Vec::new(),
        factory: program(),
    }
}

fn kill(percent: u32, how: KillHow) -> KillPoint {
    KillPoint { when: KillWhen::Percent(percent), how }
}

#[test]
fn a_job_runs_to_its_end_and_leaves_its_output_and_its_archive() {
    for store in [StoreKind::Sled, StoreKind::File, StoreKind::Memory] {
        let scene = Scene::new(store);
        let (result, updates) = Scene::ended(scene.run("first", ""));
        assert_eq!(result.outcome.state, JobState::Finished, "{:?}", result.outcome);
        assert_eq!((result.joined, result.outcome.recoveries), (false, 0));
        assert!(matches!(updates[0], RunUpdate::Accepted { resumed: false, .. }), "{updates:?}");
        scene.check_output();
        scene.check_nothing_left();
        scene.check_ledger(0);
        let archived = Archive::new(&scene.data()).read(&"first".parse().unwrap()).unwrap();
        assert_eq!(archived.unwrap().outcome, result.outcome);
    }
}

#[test]
fn rule_p1_what_was_finished_before_planned_kills_does_not_run_again() {
    for how in [KillHow::Stop, KillHow::Panic] {
        let scene = Scene::new(StoreKind::Sled);
        let mut run = scene.run("killed", "");
        run.kills = vec![kill(50, how), kill(85, how)];
        let (result, updates) = Scene::ended(run);
        assert_eq!(result.outcome.state, JobState::Finished, "{:?}", result.outcome);
        assert_eq!(result.outcome.recoveries, 2);
        scene.check_output();
        scene.check_nothing_left();
        scene.check_ledger(2);
        let lost = |update: &&RunUpdate| matches!(update, RunUpdate::JobMasterLost { planned: Some(found), .. } if *found == how);
        assert_eq!(updates.iter().filter(lost).count(), 2);
        let archived = Archive::new(&scene.data()).read(&"killed".parse().unwrap()).unwrap();
        assert_eq!(archived.unwrap().reports.len(), 2);
    }
}

#[test]
fn a_kill_at_a_time_fires_once() {
    // Before the job is accepted, and while its first tasks run.
    for at in [0, 20] {
        let scene = Scene::new(StoreKind::File);
        let mut run = scene.run("timed", "");
        let when = KillWhen::Elapsed(Duration::from_millis(at));
        run.kills = vec![KillPoint { when, how: KillHow::Stop }];
        let (result, updates) = Scene::ended(run);
        assert_eq!(result.outcome.state, JobState::Finished);
        let lost = |update: &&RunUpdate| matches!(update, RunUpdate::JobMasterLost { .. });
        assert_eq!(updates.iter().filter(lost).count(), 1, "{updates:?}");
        scene.check_output();
        scene.check_ledger(1);
    }
}

#[test]
fn rule_1_1_a_finished_job_gives_its_result_again_and_refuses_other_arguments() {
    let scene = Scene::new(StoreKind::Sled);
    let (first, _) = Scene::ended(scene.run("nightly", ""));
    let (second, updates) = Scene::ended(scene.run("nightly", ""));
    assert!(second.joined && updates.is_empty());
    assert_eq!(second.outcome, first.outcome);
    let refused = scene.run("nightly", "other").run(drop, CancelHandle::default()).unwrap_err();
    assert!(matches!(refused, LaunchError::OtherJob { .. }), "{refused}");
    scene.check_nothing_left();
    assert_eq!(interrupted_runs(&scene.data()).unwrap().runs, []);
}

#[test]
fn a_panic_in_user_code_is_one_failed_attempt() {
    let scene = Scene::new(StoreKind::Sled);
    let (result, _) = Scene::ended(scene.run("panics", "panic"));
    assert_eq!(result.outcome.state, JobState::Finished, "{:?}", result.outcome);
    scene.check_output();
}

#[test]
fn a_job_that_cannot_succeed_fails_with_its_cause_and_leaves_nothing() {
    let scene = Scene::new(StoreKind::Sled);
    let (result, _) = Scene::ended(scene.run("fails", "bad input"));
    assert_eq!(result.outcome.state, JobState::Failed);
    assert!(result.outcome.error.unwrap().contains("line 7"));
    assert!(!scene.root.path().join("out").exists());
    scene.check_nothing_left();
}

#[test]
fn a_job_that_cannot_be_built_is_refused_before_anything_is_made() {
    let scene = Scene::new(StoreKind::Sled);
    let refused = scene.run("unbuilt", "graph").run(drop, CancelHandle::default()).unwrap_err();
    assert!(matches!(refused, LaunchError::Job(text) if text.contains("column")));
    assert!(!scene.data().exists());
}

#[test]
fn a_cancel_ends_the_job_whenever_it_comes() {
    let scene = Scene::new(StoreKind::Sled);
    let early = CancelHandle::default();
    early.cancel();
    let result = scene.run("early", "forever").run(drop, early).unwrap();
    assert_eq!(result.outcome.state, JobState::Canceled);

    let cancel = CancelHandle::default();
    let (handle, mut answered) = (cancel.clone(), false);
    let updates = |update: RunUpdate| {
        if let RunUpdate::Status(status) = &update
            && status.vertices[0].running > 0
        {
            handle.cancel();
        }
        answered |= matches!(update, RunUpdate::CancelAnswered { refused: None });
    };
    let result = scene.run("late", "forever").run(updates, cancel).unwrap();
    assert_eq!(result.outcome.state, JobState::Canceled);
    assert!(answered);
    scene.check_nothing_left();
}

#[test]
fn fault_23_a_second_process_on_the_same_run_is_refused() {
    let scene = Scene::new(StoreKind::Sled);
    let cancel = CancelHandle::default();
    let handle = cancel.clone();
    let mut refused = None;
    let updates = |update: RunUpdate| {
        if matches!(update, RunUpdate::Accepted { .. }) {
            let second = scene.run("busy", "forever").run(drop, CancelHandle::default());
            refused = Some(second.unwrap_err().to_string());
            handle.cancel();
        }
    };
    scene.run("busy", "forever").run(updates, cancel).unwrap();
    assert!(refused.is_some());
}

/// Names the scene of a child process, which is this test program again.
const CHILD: &str = "REGROW_TEST_SCENE";

/// What a child process does: it runs the job until it is killed. Without a scene this is no child.
#[test]
fn child_process() {
    let Ok(scene) = env::var(CHILD) else { return };
    let (root, store) = scene.split_once(' ').unwrap();
    let store = if store == "sled" { StoreKind::Sled } else { StoreKind::File };
    run_in(Path::new(root), store, "resumed", "").run(drop, CancelHandle::default()).unwrap();
}

/// Runs the job in a child process, and kills that when `ends` tasks have ended.
fn killed_process(scene: &Scene, store: &str, ends: usize) {
    let root = scene.root.path();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "launch::tests::child_process"])
        .env(CHILD, format!("{} {store}", root.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let ended = || {
        let text = fs::read_to_string(root.join("ledger")).unwrap_or_default();
        text.lines().filter(|line| line.ends_with(" end")).count()
    };
    while ended() < ends {
        assert!(child.try_wait().unwrap().is_none(), "the child runs until it is killed");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn rule_p1_a_killed_process_is_resumed_and_finished_tasks_stay_finished() {
    for (store, kind) in [("sled", StoreKind::Sled), ("file", StoreKind::File)] {
        let scene = Scene::new(kind);
        killed_process(&scene, store, 3);
        let interrupted = interrupted_runs(&scene.data()).unwrap().runs;
        assert_eq!(interrupted.len(), 1, "{interrupted:?}");
        let other = scene.run("resumed", "other").run(drop, CancelHandle::default());
        assert!(matches!(other, Err(LaunchError::OtherJob { .. })), "{other:?}");
        let (result, updates) = Scene::ended(scene.run("resumed", ""));
        assert_eq!(result.outcome.state, JobState::Finished, "{:?}", result.outcome);
        assert!(matches!(updates[0], RunUpdate::Accepted { resumed: true, .. }), "{updates:?}");
        assert_eq!(result.outcome.recoveries, 1);
        scene.check_output();
        scene.check_nothing_left();
        scene.check_ledger(0);
    }
}
