use regrow_protocol::{JobVertexId, RunId, SubmissionId};
use regrow_runtime::{JobGraph, OutputPreparation, SinkSpec};

use super::*;
use crate::output::OutputCommitter;

fn resumable(data: &Path) -> Vec<InterruptedRun> {
    interrupted_runs(data).unwrap().runs
}

fn job(name: &str) -> JobId {
    name.parse().unwrap()
}

fn run(name: &str) -> InterruptedRun {
    InterruptedRun {
        job: job(name),
        job_name: "sort".to_owned(),
        arguments: vec![1, 2],
        settings: vec![("heartbeat.interval".to_owned(), "1 s".to_owned())],
        ledger: Some(PathBuf::from("/tmp/ledger")),
    }
}

fn submission(name: &str) -> JobSubmission {
    JobSubmission {
        job: job(name),
        run: RunId::from_bits(9),
        submission: SubmissionId::from_bits(8),
        job_name: "sort".to_owned(),
        arguments: vec![1, 2],
        graph: JobGraph::default(),
        ledger: None,
        settings: Vec::new(),
    }
}

fn note(directory: &RunDirectory, store: StoreKind) -> NotedRun {
    let name = directory.job.as_str().to_owned();
    let noted = directory.new_run(run(&name), store, &submission(&name));
    noted.write().unwrap();
    noted
}

#[test]
fn a_run_whose_process_died_is_listed_with_all_that_it_takes_to_resume_it() {
    let data = tempfile::tempdir().unwrap();
    for name in ["b", "a"] {
        note(&RunDirectory::lock(data.path(), &job(name)).unwrap(), StoreKind::Sled);
    }
    assert_eq!(resumable(data.path()), [run("a"), run("b")]);
}

#[test]
fn a_run_that_a_process_works_on_is_not_interrupted() {
    let data = tempfile::tempdir().unwrap();
    let directory = RunDirectory::lock(data.path(), &job("a")).unwrap();
    note(&directory, StoreKind::Sled);
    assert_eq!(resumable(data.path()), []);
}

#[test]
fn a_run_that_was_never_accepted_or_kept_nothing_is_not_listed() {
    let data = tempfile::tempdir().unwrap();
    RunDirectory::lock(data.path(), &job("a")).unwrap();
    let memory = RunDirectory::lock(data.path(), &job("b")).unwrap();
    note(&memory, StoreKind::Memory);
    drop(memory);
    assert_eq!(resumable(data.path()), []);
    assert_eq!(resumable(&data.path().join("nowhere")), []);
}

#[test]
fn fault_23_a_second_process_is_told_who_has_the_run() {
    let data = tempfile::tempdir().unwrap();
    let _directory = RunDirectory::lock(data.path(), &job("a")).unwrap();
    let refused = RunDirectory::lock(data.path(), &job("a")).unwrap_err();
    let LaunchError::Store(error) = refused else { panic!("{refused}") };
    assert!(error.to_string().contains(&format!("process {}", process::id())), "{error}");
}

#[test]
fn a_removed_run_leaves_nothing_and_can_be_run_again() {
    let data = tempfile::tempdir().unwrap();
    let directory = RunDirectory::lock(data.path(), &job("a")).unwrap();
    note(&directory, StoreKind::Sled);
    fs::create_dir_all(directory.shuffle()).unwrap();
    directory.remove().unwrap();
    assert_eq!(fs::read_dir(RunDirectory::all(data.path())).unwrap().count(), 0);
    let again = RunDirectory::lock(data.path(), &job("a")).unwrap();
    assert_eq!(again.resumable().unwrap(), None);
}

#[test]
fn what_a_dead_process_was_removing_is_swept() {
    let data = tempfile::tempdir().unwrap();
    let leftover = RunDirectory::all(data.path()).join(".removed-b-1");
    fs::create_dir_all(leftover.join("store")).unwrap();
    RunDirectory::lock(data.path(), &job("a")).unwrap();
    assert!(!leftover.exists());
}

#[test]
fn what_can_never_go_on_is_swept_and_what_can_stays() {
    let data = tempfile::tempdir().unwrap();
    let path = |name| RunDirectory::of(data.path(), &job(name));
    fs::create_dir_all(path("empty")).unwrap();
    drop(RunDirectory::lock(data.path(), &job("running")).unwrap());
    let running = RunDirectory::lock(data.path(), &job("running")).unwrap();
    fs::create_dir_all(path("unaccepted").join("store")).unwrap();
    for (name, store) in [("memory", StoreKind::Memory), ("kept", StoreKind::File)] {
        fs::create_dir_all(path(name)).unwrap();
        let identity = noted_run::identity(&submission(name), 1);
        RunFile::new(run(name), store, identity).write(&path(name)).unwrap();
    }
    drop(RunDirectory::lock(data.path(), &job("a")).unwrap());
    assert_eq!(
        ["empty", "unaccepted", "memory", "kept", "running"].map(|name| path(name).exists()),
        [false, false, false, true, true]
    );
    drop(running);
}

#[test]
fn p5_a_run_whose_file_is_damaged_is_not_taken_for_one_that_never_was() {
    let data = tempfile::tempdir().unwrap();
    let path = RunDirectory::of(data.path(), &job("a"));
    note(&RunDirectory::lock(data.path(), &job("a")).unwrap(), StoreKind::Sled);
    let whole = fs::read(RunFile::path(&path)).unwrap();
    let newer = String::from_utf8(whole.clone()).unwrap().replace(": 1,", ": 7,");
    for content in [&whole[..10], b"", newer.as_bytes()] {
        fs::write(RunFile::path(&path), content).unwrap();
        let refused = RunDirectory::lock(data.path(), &job("a")).unwrap().resumable().unwrap_err();
        assert!(matches!(refused, LaunchError::RunFile { .. }), "{refused}");
        drop(RunDirectory::lock(data.path(), &job("b")).unwrap());
        assert!(path.exists());
        let found = interrupted_runs(data.path()).unwrap();
        assert!(found.runs.is_empty());
        assert!(matches!(&found.unreadable[..], [LaunchError::RunFile { .. }]));
    }
}

#[test]
fn clearing_keeps_the_lock_only() {
    let data = tempfile::tempdir().unwrap();
    let directory = RunDirectory::lock(data.path(), &job("a")).unwrap();
    note(&directory, StoreKind::Memory);
    fs::create_dir_all(directory.store()).unwrap();
    directory.clear().unwrap();
    let left: Vec<_> = fs::read_dir(RunDirectory::of(data.path(), &job("a")))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["lock"]);
    assert!(RunDirectory::lock(data.path(), &job("a")).is_err());
}

/// A run with one sink, prepared in `output`; gives its hidden directory.
fn staging(data: &Path, name: &str, store: StoreKind, output: &Path) -> PathBuf {
    let sinks = vec![SinkSpec {
        vertex: JobVertexId(0),
        directory: output.to_string_lossy().into_owned(),
        overwrite: false,
    }];
    let mut submission = submission(name);
    submission.graph.sinks.clone_from(&sinks);
    let directory = RunDirectory::lock(data, &job(name)).unwrap();
    directory.new_run(run(name), store, &submission).write().unwrap();
    let preparation = OutputPreparation { run: submission.run, sinks };
    let hidden = OutputCommitter::new(job(name)).prepare(&preparation).unwrap();
    PathBuf::from(&hidden[0])
}

#[test]
fn what_a_dead_run_in_memory_staged_goes_with_it_and_with_its_successor() {
    for sweeping in [true, false] {
        let data = tempfile::tempdir().unwrap();
        let output = data.path().join("out");
        let hidden = staging(data.path(), "a", StoreKind::Memory, &output);
        fs::write(hidden.join("sink-0-part-00000"), "x").unwrap();
        let next = job(if sweeping { "b" } else { "a" });
        let directory = RunDirectory::lock(data.path(), &next).unwrap();
        if !sweeping {
            assert_eq!(directory.resumable().unwrap(), None);
            directory.clear().unwrap();
        }
        assert!(!output.exists(), "it made it, and nothing was published");
        assert_eq!(RunDirectory::of(data.path(), &job("a")).exists(), !sweeping);
    }
}

#[test]
fn rule_6_2_a_run_in_memory_that_was_publishing_must_go_on() {
    let data = tempfile::tempdir().unwrap();
    let hidden = staging(data.path(), "a", StoreKind::Memory, &data.path().join("out"));
    fs::write(hidden.join("manifest"), "").unwrap();
    drop(RunDirectory::lock(data.path(), &job("b")).unwrap());
    assert_eq!(resumable(data.path()), [run("a")]);
    assert!(hidden.exists());
}

#[test]
fn p5_what_another_run_staged_is_not_removed() {
    let data = tempfile::tempdir().unwrap();
    let output = data.path().join("out");
    let hidden = staging(data.path(), "a", StoreKind::Memory, &output);
    let owner = fs::read_to_string(hidden.join("owner")).unwrap();
    fs::write(hidden.join("owner"), owner.replace("\"a\"", "\"other\"")).unwrap();
    drop(RunDirectory::lock(data.path(), &job("b")).unwrap());
    assert!(hidden.exists());
}

#[test]
fn a_file_of_the_first_form_is_read_and_names_no_run() {
    let data = tempfile::tempdir().unwrap();
    let path = RunDirectory::of(data.path(), &job("a"));
    fs::create_dir_all(&path).unwrap();
    let first = r#"{
  "format": 1,
  "job": "a",
  "job_name": "sort",
  "arguments": [1, 2],
  "settings": [["heartbeat.interval", "1 s"]],
  "ledger": "/tmp/ledger",
  "store": "sled"
}"#;
    fs::write(RunFile::path(&path), first).unwrap();
    assert_eq!(resumable(data.path()), [run("a")]);
    let directory = RunDirectory::lock(data.path(), &job("a")).unwrap();
    let mut noted = directory.noted(directory.resumable().unwrap().unwrap());
    assert_eq!((noted.run(), noted.accepted(&submission("a"))), (None, None));
    noted.adopt(&submission("a"), 3).unwrap();
    let file = directory.resumable().unwrap().unwrap();
    assert_eq!(file.identity(), Some(&noted_run::identity(&submission("a"), 3)));
}

#[test]
fn the_file_of_today_stays_readable() {
    let data = tempfile::tempdir().unwrap();
    let path = RunDirectory::of(data.path(), &job("a"));
    fs::create_dir_all(&path).unwrap();
    let today = r#"{
  "format": 1,
  "job": "a",
  "job_name": "sort",
  "arguments": [1, 2],
  "settings": [],
  "ledger": null,
  "store": "file",
  "identity": {
    "run": "0000000000000000000000000000000a",
    "submission": "0000000000000000000000000000000b",
    "graph_hash": 12484912461847024305,
    "staging": ["/out/.regrow-0000000000000000000000000000000a"],
    "term": 7
  }
}"#;
    fs::write(RunFile::path(&path), today).unwrap();
    let file = RunFile::read(&path).unwrap().unwrap();
    let identity = file.identity().unwrap();
    assert_eq!((identity.run, identity.term), (RunId::from_bits(10), 7));
    assert_eq!(identity.graph_hash, 12_484_912_461_847_024_305);
}

/// What a new job `b` is told that is to overwrite `output`.
fn overwriting(data: &Path, output: &Path) -> Result<(), OutputInUse> {
    let directory = output.to_string_lossy().into_owned();
    let sink = SinkSpec { vertex: JobVertexId(0), directory, overwrite: true };
    check_output_unused(data, &job("b"), &[sink])
}

#[test]
fn rule_6_2_the_output_of_a_run_that_can_go_on_is_not_overwritten() {
    let data = tempfile::tempdir().unwrap();
    let output = data.path().join("out");
    let hidden = staging(data.path(), "a", StoreKind::Sled, &output);
    let link = data.path().join("link");
    std::os::unix::fs::symlink(&output, &link).unwrap();
    let path = RunDirectory::of(data.path(), &job("a"));
    for output in [&output, &link] {
        let refused = overwriting(data.path(), output).unwrap_err();
        assert!(matches!(refused, OutputInUse::Interrupted { .. }), "{refused}");
        let advice = format!("remove {} and {}", path.display(), hidden.display());
        let text = refused.to_string();
        assert!(text.contains("--job-id a") && text.contains(&advice), "{text}");
    }
    let locked = RunDirectory::lock(data.path(), &job("a")).unwrap();
    let text = overwriting(data.path(), &output).unwrap_err().to_string();
    assert!(text.contains(&format!("job a, which process {} runs", process::id())), "{text}");
    fs::remove_dir_all(&hidden).unwrap();
    assert!(overwriting(data.path(), &output).is_err(), "it is just about to stage there");
    overwriting(data.path(), &data.path().join("other")).unwrap();
    locked.remove().unwrap();
    overwriting(data.path(), &output).unwrap();
}

#[test]
fn rule_6_2_what_a_run_in_memory_writes_is_not_overwritten_while_it_runs() {
    let data = tempfile::tempdir().unwrap();
    let output = data.path().join("out");
    staging(data.path(), "a", StoreKind::Memory, &output);
    overwriting(data.path(), &output).unwrap();
    let _running = RunDirectory::lock(data.path(), &job("a")).unwrap();
    let refused = overwriting(data.path(), &output).unwrap_err();
    assert!(matches!(refused, OutputInUse::Running { .. }), "{refused}");
}

#[test]
fn p5_a_run_that_cannot_be_read_keeps_what_it_staged() {
    let data = tempfile::tempdir().unwrap();
    let output = data.path().join("out");
    let hidden = staging(data.path(), "a", StoreKind::Sled, &output);
    let file = RunFile::path(&RunDirectory::of(data.path(), &job("a")));
    fs::write(&file, "{").unwrap();
    let refused = overwriting(data.path(), &output).unwrap_err();
    let text = with_causes(&refused);
    for part in [&hidden, &file] {
        assert!(text.contains(&part.display().to_string()), "{text}");
    }
    overwriting(data.path(), &data.path().join("other")).unwrap();
}

#[test]
fn rule_6_2_of_runs_that_nobody_knows_only_one_that_publishes_is_in_the_way() {
    let data = tempfile::tempdir().unwrap();
    let output = data.path().join("out");
    let hidden = staging(data.path(), "a", StoreKind::Sled, &output);
    let elsewhere = data.path().join("elsewhere");
    overwriting(&elsewhere, &output).unwrap();
    fs::write(hidden.join("manifest"), "").unwrap();
    let text = overwriting(&elsewhere, &output).unwrap_err().to_string();
    assert!(text.contains("job a") && text.contains(hidden.to_str().unwrap()), "{text}");
}

#[test]
fn what_a_cluster_keeps_of_its_jobs_is_not_swept_nor_released() {
    let data = tempfile::tempdir().unwrap();
    let reports = RunDirectory::of(data.path(), &job("a")).join("reports");
    fs::create_dir_all(&reports).unwrap();
    sweep(data.path());
    assert!(reports.exists());
    RunDirectory::lock(data.path(), &job("a")).unwrap().release();
    sweep(data.path());
    assert!(reports.exists());
    RunDirectory::lock(data.path(), &job("b")).unwrap().release();
    assert!(!RunDirectory::of(data.path(), &job("b")).exists());
}
