use super::*;

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

#[test]
fn a_run_whose_process_died_is_listed_with_all_that_it_takes_to_resume_it() {
    let data = tempfile::tempdir().unwrap();
    for name in ["b", "a"] {
        RunDirectory::lock(data.path(), &job(name))
            .unwrap()
            .note(&run(name), StoreKind::Sled)
            .unwrap();
    }
    assert_eq!(resumable(data.path()), [run("a"), run("b")]);
}

#[test]
fn a_run_that_a_process_works_on_is_not_interrupted() {
    let data = tempfile::tempdir().unwrap();
    let directory = RunDirectory::lock(data.path(), &job("a")).unwrap();
    directory.note(&run("a"), StoreKind::Sled).unwrap();
    assert_eq!(resumable(data.path()), []);
}

#[test]
fn a_run_that_was_never_accepted_or_kept_nothing_is_not_listed() {
    let data = tempfile::tempdir().unwrap();
    RunDirectory::lock(data.path(), &job("a")).unwrap();
    let memory = RunDirectory::lock(data.path(), &job("b")).unwrap();
    memory.note(&run("b"), StoreKind::Memory).unwrap();
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
    directory.note(&run("a"), StoreKind::Sled).unwrap();
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
        RunFile::new(run(name), store).write(&path(name)).unwrap();
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
    RunDirectory::lock(data.path(), &job("a")).unwrap().note(&run("a"), StoreKind::Sled).unwrap();
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
    directory.note(&run("a"), StoreKind::Memory).unwrap();
    fs::create_dir_all(directory.store()).unwrap();
    directory.clear().unwrap();
    let left: Vec<_> = fs::read_dir(RunDirectory::of(data.path(), &job("a")))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["lock"]);
    assert!(RunDirectory::lock(data.path(), &job("a")).is_err());
}
