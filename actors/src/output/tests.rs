use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use regrow_protocol::{Epoch, ExecutionAttemptId, JobVertexId, RunId, StagedFile};
use regrow_runtime::{CommitPlan, JobState, OutputPreparation, SinkSpec};
use tempfile::TempDir;

use super::{OutputCommitter, OutputError, disk::Disk, hidden_directory, manifest::Owner};

const RUN: RunId = RunId::from_bits(7);

/// One output directory and a committer.
struct Scene {
    root: TempDir,
    overwrite: bool,
}

impl Scene {
    fn new(overwrite: bool) -> Self {
        Self { root: tempfile::tempdir().unwrap(), overwrite }
    }

    fn directory(&self) -> PathBuf {
        self.root.path().join("out")
    }

    fn sink(&self, name: &str) -> SinkSpec {
        SinkSpec {
            vertex: JobVertexId(0),
            directory: self.root.path().join(name).to_string_lossy().into_owned(),
            overwrite: self.overwrite,
        }
    }

    fn preparation(&self, run: RunId) -> OutputPreparation {
        OutputPreparation { run, sinks: vec![self.sink("out")] }
    }

    fn put_old(&self, name: &str, content: &str) {
        fs::create_dir_all(self.directory()).unwrap();
        fs::write(self.directory().join(name), content).unwrap();
    }

    /// Prepares, and stages `files` as (final name, content), each by an attempt of its own.
    fn staged(&self, files: &[(&str, &str)]) -> CommitPlan {
        committer().prepare(&self.preparation(RUN)).unwrap();
        let sinks = vec![self.sink("out")];
        let winners = (0..)
            .zip(files)
            .map(|(subtask, (name, content))| stage(&sinks, 0, subtask, name, content))
            .collect();
        CommitPlan { run: RUN, sinks, winners }
    }

    /// All plain files of the output directory.
    fn published(&self) -> BTreeMap<String, String> {
        let entries = fs::read_dir(self.directory()).unwrap().map(|entry| entry.unwrap());
        entries
            .filter(|entry| entry.file_type().unwrap().is_file())
            .map(|entry| {
                let content = fs::read_to_string(entry.path()).unwrap();
                (entry.file_name().into_string().unwrap(), content)
            })
            .collect()
    }
}

fn stage(
    sinks: &[SinkSpec],
    sink: u32,
    subtask: u32,
    name: &str,
    content: &str,
) -> (ExecutionAttemptId, StagedFile) {
    let staged_name = format!("{sink}-{subtask}-0");
    let hidden = hidden_directory(&sinks[sink as usize], RUN);
    fs::write(hidden.join(&staged_name), content).unwrap();
    let file = StagedFile {
        sink,
        staged_name,
        final_name: name.to_owned(),
        bytes: content.len() as u64,
        checksum: crc32c::crc32c(content.as_bytes()),
    };
    (attempt(subtask), file)
}

fn attempt(subtask: u32) -> ExecutionAttemptId {
    let epoch = Epoch::new(1, 0);
    ExecutionAttemptId { run: RUN, vertex: JobVertexId(0), subtask, epoch, number: 0 }
}

fn committer() -> OutputCommitter {
    OutputCommitter::new("job".parse().unwrap())
}

fn dying_after(steps: u32) -> OutputCommitter {
    OutputCommitter { disk: Disk::dying_after(steps), ..committer() }
}

fn listing(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn winners_are_published_and_losers_vanish() {
    let scene = Scene::new(false);
    let plan = scene.staged(&[("part-00000.csv", "a"), ("part-00001.csv", "b")]);
    fs::write(hidden_directory(&plan.sinks[0], RUN).join("0-1-1"), "a loser").unwrap();
    committer().commit(&plan).unwrap();
    committer().clean_up(RUN, &plan.sinks, JobState::Finished).unwrap();
    assert_eq!(names(&scene.directory()), ["part-00000.csv", "part-00001.csv"]);
}

#[test]
fn rule_6_2_a_crash_at_any_step_of_prepare_changes_nothing_for_the_next_life() {
    for steps in 0.. {
        let scene = Scene::new(false);
        let ended = dying_after(steps).prepare(&scene.preparation(RUN)).is_ok();
        let staging = committer().prepare(&scene.preparation(RUN)).unwrap();
        assert_eq!(names(Path::new(&staging[0])), ["owner"], "after {steps} steps");
        if ended {
            assert!(steps > 3, "the steps are counted");
            return;
        }
    }
}

#[test]
fn rule_5_12_without_a_log_the_manifest_tells_what_is_published() {
    let expected = listing(&[("part-00000.csv", "a"), ("part-00001.csv", "b")]);
    for steps in 0.. {
        let scene = Scene::new(false);
        let plan = scene.staged(&[("part-00000.csv", "a"), ("part-00001.csv", "b")]);
        let ended = dying_after(steps).commit(&plan).is_ok();
        let decided = committer().decided(RUN, &plan.sinks);
        let is_there = hidden_directory(&plan.sinks[0], RUN).join("manifest").exists();
        assert_eq!(decided.is_some(), is_there, "after {steps} steps");
        let Some(decided) = decided else { continue };
        let files = |plan: &CommitPlan| -> Vec<StagedFile> {
            plan.winners.iter().map(|(_, file)| file.clone()).collect()
        };
        assert_eq!(files(&decided), files(&plan));
        committer().commit(&decided).unwrap();
        assert_eq!(scene.published(), expected, "after {steps} steps");
        if ended {
            return;
        }
    }
}

#[test]
fn rule_6_2_a_manifest_that_cannot_be_read_is_left_to_who_publishes() {
    let scene = Scene::new(false);
    let plan = scene.staged(&[("part-00000.csv", "a")]);
    fs::write(hidden_directory(&plan.sinks[0], RUN).join("manifest"), "x").unwrap();
    let decided = committer().decided(RUN, &plan.sinks).unwrap();
    let error = committer().commit(&decided).unwrap_err();
    assert!(matches!(error, OutputError::Damaged { .. }), "{error}");
}

#[test]
fn rule_6_2_a_crash_at_any_step_of_a_commit_leads_to_the_same_listing() {
    let expected = listing(&[("part-00000.csv", "new 0"), ("part-00001.csv", "new 1")]);
    for steps in 0.. {
        let scene = Scene::new(true);
        for (name, content) in [("part-00000.csv", "old 0"), ("part-00007.csv", "old 7")] {
            scene.put_old(name, content);
        }
        let plan = scene.staged(&[("part-00000.csv", "new 0"), ("part-00001.csv", "new 1")]);
        let ended = dying_after(steps).commit(&plan).is_ok();
        // A crash in the second life, too, at every step.
        let _ = dying_after(steps / 2).commit(&plan);
        committer().commit(&plan).unwrap();
        assert_eq!(scene.published(), expected, "after {steps} steps");
        committer().commit(&plan).unwrap();
        assert_eq!(scene.published(), expected, "once more, after {steps} steps");
        if ended {
            assert!(steps > 5, "the steps are counted");
            return;
        }
    }
}

#[test]
fn rule_6_2_old_files_stay_whole_until_they_are_replaced() {
    for steps in 0..8 {
        let scene = Scene::new(true);
        scene.put_old("part-00000.csv", "old");
        let plan = scene.staged(&[("part-00000.csv", "new")]);
        let _ = dying_after(steps).commit(&plan);
        let found = scene.published().remove("part-00000.csv").unwrap();
        assert!(found == "old" || found == "new", "{found:?} after {steps} steps");
    }
}

#[test]
fn rule_6_2_who_finds_a_manifest_makes_no_other() {
    let scene = Scene::new(false);
    let plan = scene.staged(&[("part-00000.csv", "first")]);
    // Two steps of the manifest, its directory, and the first rename is refused.
    assert!(dying_after(3).commit(&plan).is_err());
    let other = CommitPlan {
        winners: vec![stage(&plan.sinks, 0, 9, "part-00009.csv", "second")],
        ..plan.clone()
    };
    committer().commit(&other).unwrap();
    assert_eq!(scene.published(), listing(&[("part-00000.csv", "first")]));
}

#[test]
fn rule_6_2_a_run_is_refused_where_another_one_publishes() {
    let scene = Scene::new(true);
    let plan = scene.staged(&[("part-00000.csv", "a")]);
    assert!(dying_after(3).commit(&plan).is_err());
    let refused = committer().prepare(&scene.preparation(RunId::from_bits(8))).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("job job") && text.contains(&RUN.to_string()), "{text}");
}

#[test]
fn a_directory_that_holds_something_is_refused_and_left_alone() {
    let scene = Scene::new(false);
    scene.put_old("notes.txt", "mine");
    let refused = committer().prepare(&scene.preparation(RUN)).unwrap_err();
    assert!(matches!(refused, OutputError::NotEmpty { found, .. } if found == "notes.txt"));
    assert_eq!(names(&scene.directory()), ["notes.txt"]);
}

#[test]
fn a_file_where_the_directory_should_be_is_refused() {
    let scene = Scene::new(true);
    fs::write(scene.directory(), "a file").unwrap();
    let refused = committer().prepare(&scene.preparation(RUN)).unwrap_err();
    assert!(matches!(refused, OutputError::NoDirectory { found: "a file", .. }), "{refused}");
}

#[test]
fn what_has_the_name_of_a_part_file_and_is_none_is_refused_first() {
    for (name, link, found) in
        [("part-00000.csv", false, "a directory"), ("part-00001", true, "a link")]
    {
        let scene = Scene::new(true);
        scene.put_old("part-old", "stays");
        fs::create_dir(scene.directory().join("part-of-something")).unwrap();
        committer().prepare(&scene.preparation(RUN)).unwrap();
        let path = scene.directory().join(name);
        if link {
            std::os::unix::fs::symlink("part-old", &path).unwrap();
        } else {
            fs::create_dir(&path).unwrap();
        }
        let next = scene.preparation(RunId::from_bits(8));
        for error in [
            committer().prepare(&next).unwrap_err(),
            OutputCommitter::check_free(&next.sinks).unwrap_err(),
            super::check_place(&next.sinks[0]).unwrap_err(),
        ] {
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(found), "{text}");
        }
    }
}

#[test]
fn overwriting_touches_part_files_only() {
    let scene = Scene::new(true);
    scene.put_old("notes.txt", "mine");
    scene.put_old("part-00003.csv", "old");
    let plan = scene.staged(&[("part-00000.csv", "new")]);
    committer().commit(&plan).unwrap();
    assert_eq!(scene.published(), listing(&[("notes.txt", "mine"), ("part-00000.csv", "new")]));
}

#[test]
fn an_old_file_that_changed_since_the_decision_is_neither_replaced_nor_removed() {
    let scene = Scene::new(true);
    for name in ["part-00000.csv", "part-00007.csv"] {
        scene.put_old(name, "old");
    }
    let plan = scene.staged(&[("part-00001.csv", "new")]);
    assert!(dying_after(3).commit(&plan).is_err());
    scene.put_old("part-00007.csv", "somebody's");
    committer().commit(&plan).unwrap();
    let expected = listing(&[("part-00001.csv", "new"), ("part-00007.csv", "somebody's")]);
    assert_eq!(scene.published(), expected);
}

#[test]
fn a_foreign_file_in_the_way_fails_the_commit_by_name() {
    let scene = Scene::new(false);
    let plan = scene.staged(&[("part-00000.csv", "a")]);
    scene.put_old("part-00000.csv", "somebody's");
    let error = committer().commit(&plan).unwrap_err();
    assert!(error.to_string().contains("part-00000.csv"), "{error}");
    assert_eq!(scene.published(), listing(&[("part-00000.csv", "somebody's")]));
}

#[test]
fn rule_6_2_lost_staged_files_are_found_before_anything_is_published() {
    let scene = Scene::new(false);
    let plan =
        scene.staged(&[("part-00000.csv", "a"), ("part-00001.csv", "b"), ("part-00002.csv", "c")]);
    assert_eq!(committer().lost_staged_files(&plan), []);
    let hidden = hidden_directory(&plan.sinks[0], RUN);
    fs::remove_file(hidden.join("0-0-0")).unwrap();
    fs::write(hidden.join("0-2-0"), "longer").unwrap();
    assert_eq!(committer().lost_staged_files(&plan), [attempt(0), attempt(2)]);
    assert!(committer().commit(&plan).is_err());
    assert!(scene.published().is_empty());
}

#[test]
fn rule_6_2_after_a_restart_of_the_host_contents_are_compared() {
    let scene = Scene::new(false);
    let plan = scene.staged(&[("part-00000.csv", "abc")]);
    let hidden = hidden_directory(&plan.sinks[0], RUN);
    fs::write(hidden.join("0-0-0"), "\0\0\0").unwrap();
    assert_eq!(committer().lost_staged_files(&plan), []);
    let mut owner = Owner::read(&hidden).unwrap().unwrap();
    owner.boot = Some("an earlier one".to_owned());
    owner.write(&Disk::default(), &hidden).unwrap();
    assert_eq!(committer().lost_staged_files(&plan), [attempt(0)]);
}

#[test]
fn two_sinks_commit_as_one() {
    for steps in 0.. {
        let scene = Scene::new(false);
        let sinks = vec![scene.sink("out"), scene.sink("other")];
        let preparation = OutputPreparation { run: RUN, sinks };
        committer().prepare(&preparation).unwrap();
        let sinks = preparation.sinks;
        let winners = vec![
            stage(&sinks, 0, 0, "part-00000.csv", "a"),
            stage(&sinks, 1, 0, "part-00000.csv", "b"),
        ];
        let plan = CommitPlan { run: RUN, sinks, winners };
        let ended = dying_after(steps).commit(&plan).is_ok();
        committer().commit(&plan).unwrap();
        committer().clean_up(RUN, &plan.sinks, JobState::Finished).unwrap();
        for directory in ["out", "other"] {
            let path = scene.root.path().join(directory);
            assert_eq!(names(&path), ["part-00000.csv"], "after {steps} steps");
        }
        if ended {
            return;
        }
    }
}

#[test]
fn sinks_that_share_a_directory_are_refused() {
    let scene = Scene::new(true);
    for (first, second) in [("out", "out"), ("out", "out/inner"), ("out/inner", "out")] {
        let sinks = vec![scene.sink(first), scene.sink(second)];
        let preparation = OutputPreparation { run: RUN, sinks };
        let refused = committer().prepare(&preparation).unwrap_err();
        assert!(matches!(refused, OutputError::SharedDirectory { .. }), "{refused}");
    }
}

#[test]
fn names_that_lead_out_of_the_directory_are_refused() {
    let scene = Scene::new(false);
    for name in ["../escape", "", ".hidden", "a/b"] {
        let mut plan = scene.staged(&[("part-00000.csv", "a")]);
        plan.winners[0].1.final_name = name.to_owned();
        let refused = committer().commit(&plan).unwrap_err();
        assert!(matches!(refused, OutputError::BadName { .. }), "{name:?}: {refused}");
    }
}

#[test]
fn a_job_without_records_publishes_nothing_and_succeeds() {
    let scene = Scene::new(true);
    scene.put_old("part-00000.csv", "old");
    let plan = scene.staged(&[]);
    committer().commit(&plan).unwrap();
    committer().clean_up(RUN, &plan.sinks, JobState::Finished).unwrap();
    assert!(names(&scene.directory()).is_empty());
}

#[test]
fn a_job_that_failed_leaves_no_directory_that_it_made_and_left_empty() {
    let scene = Scene::new(false);
    let above = scene.root.path().join("above");
    let sinks = vec![scene.sink("above/a"), scene.sink("above/b")];
    let preparation = OutputPreparation { run: RUN, sinks: sinks.clone() };
    committer().prepare(&preparation).unwrap();
    // As after a restart, when they are there.
    committer().prepare(&preparation).unwrap();
    committer().clean_up(RUN, &sinks, JobState::Failed).unwrap();
    assert!(!above.exists());

    committer().prepare(&preparation).unwrap();
    fs::write(above.join("b/of-somebody"), "").unwrap();
    committer().clean_up(RUN, &sinks, JobState::Canceled).unwrap();
    assert_eq!(names(&above), ["b"]);

    committer().prepare(&OutputPreparation { run: RUN, sinks: sinks[..1].to_vec() }).unwrap();
    committer().clean_up(RUN, &sinks[..1], JobState::Finished).unwrap();
    assert_eq!(names(&above), ["a", "b"]);
    committer().prepare(&OutputPreparation { run: RUN, sinks: sinks[..1].to_vec() }).unwrap();
    committer().clean_up(RUN, &sinks[..1], JobState::Failed).unwrap();
    assert_eq!(names(&above), ["a", "b"], "it was there before");
}

#[test]
fn a_preparation_that_is_refused_leaves_nothing_behind() {
    let scene = Scene::new(false);
    scene.put_old("file", "content");
    let sinks = vec![scene.sink("new/a"), scene.sink("out")];
    let error = committer().prepare(&OutputPreparation { run: RUN, sinks }).unwrap_err();
    assert!(matches!(error, OutputError::NotEmpty { .. }), "{error}");
    assert_eq!(names(scene.root.path()), ["out"]);
}
