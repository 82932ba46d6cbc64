use std::{fs, path::Path};

use regrow_protocol::{Accumulators, DataDirectoryId, RunId, SubmissionId, encode};
use regrow_runtime::{JobGraph, StoreKind};
use regrow_store::{MemoryStore, Table};

use super::{documents::StoredJob, *};
use crate::{
    dispatcher::store_work,
    launch::InterruptedRun,
    run_directory::{RunDirectory, RunFile},
};

fn admit(
    store: &mut dyn EventStore,
    archive: &Archive,
    submission: &JobSubmission,
    noted: Option<&NotedRun>,
) -> Result<Admission, SubmitError> {
    super::admit(store, archive, submission, noted, None)
}

fn submission(arguments: &str, run: u128) -> JobSubmission {
    JobSubmission {
        job: "nightly".parse().unwrap(),
        run: RunId::from_bits(run),
        submission: SubmissionId::from_bits(run),
        job_name: "sort".to_owned(),
        arguments: arguments.as_bytes().to_vec(),
        graph: JobGraph::default(),
        ledger: None,
        settings: Vec::new(),
    }
}

fn outcome(run: u128, state: JobState) -> JobOutcome {
    JobOutcome {
        job: "nightly".parse().unwrap(),
        run: RunId::from_bits(run),
        state,
        recoveries: 0,
        error: None,
        accumulators: Accumulators::default(),
    }
}

fn archived(archive: &Archive, arguments: &str, state: JobState) {
    let job = ArchivedJob {
        outcome: outcome(1, state),
        job_name: "sort".to_owned(),
        arguments: arguments.as_bytes().to_vec(),
        submission: Some(SubmissionId::from_bits(1)),
        reports: Vec::new(),
    };
    archive.write(&job, &[]).unwrap();
}

#[test]
fn rule_1_1_an_equal_submission_goes_on_with_the_run_that_is_there() {
    let data = tempfile::tempdir().unwrap();
    let archive = Archive::new(data.path());
    let mut store = MemoryStore::new();
    let first = admit(&mut store, &archive, &submission("--input a", 1), None).unwrap();
    assert!(matches!(first, Admission::New(_)));
    let second = admit(&mut store, &archive, &submission("--input a", 2), None).unwrap();
    let Admission::Again { accepted, lacks: None } = second else { panic!("{second:?}") };
    assert_eq!(*accepted, submission("--input a", 1));
}

#[test]
fn rule_1_1_other_arguments_under_a_known_id_are_refused_with_both_named() {
    let data = tempfile::tempdir().unwrap();
    let archive = Archive::new(data.path());
    let mut store = MemoryStore::new();
    admit(&mut store, &archive, &submission("--input a", 1), None).unwrap();
    let refused = admit(&mut store, &archive, &submission("--input b", 2), None).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("sort --input a") && text.contains("sort --input b"), "{text}");
}

#[test]
fn rule_1_1_a_finished_job_gives_its_result_and_a_failed_one_runs_again() {
    let data = tempfile::tempdir().unwrap();
    let archive = Archive::new(data.path());
    archived(&archive, "--input a", JobState::Finished);
    let again = admit(&mut MemoryStore::new(), &archive, &submission("--input a", 2), None);
    assert!(
        matches!(again.unwrap(), Admission::Ended(outcome) if outcome.run == RunId::from_bits(1))
    );
    let other = admit(&mut MemoryStore::new(), &archive, &submission("--input b", 2), None);
    assert!(matches!(other, Err(SubmitError::OtherJob { .. })));
    for state in [JobState::Failed, JobState::Canceled] {
        archived(&archive, "--input a", state);
        let again = admit(&mut MemoryStore::new(), &archive, &submission("--input b", 2), None);
        assert!(matches!(again.unwrap(), Admission::New(_)));
    }
}

#[test]
fn rule_1_1_the_same_submission_always_gets_the_result_of_its_own_run() {
    let data = tempfile::tempdir().unwrap();
    let (archive, mut store) = (Archive::new(data.path()), MemoryStore::new());
    let ends = |store: &mut MemoryStore, run| {
        let again = admit(store, &archive, &submission("--input a", run), None);
        matches!(again.unwrap(), Admission::Ended(outcome) if outcome.run == RunId::from_bits(run))
    };
    for run in 1..=3 {
        let begun = submission("--input a", run);
        let first = admit(&mut store, &archive, &begun, None).unwrap();
        assert!(matches!(first, Admission::New(_)), "another one is another run: {first:?}");
        assert!((1..run).all(|before| ends(&mut store, before)), "while a later one runs");
        store_result(&mut store, &begun, &outcome(run, JobState::Failed)).unwrap();
        store.remove(Table::JobGraphs, "nightly").unwrap();
        assert!((1..=run).all(|before| ends(&mut store, before)));
    }
    let of = |store: &mut MemoryStore, which| {
        let job = "nightly".parse().unwrap();
        ended(store, &archive, &job, which).unwrap().map(|outcome| outcome.run)
    };
    assert_eq!(of(&mut store, Which::Newest), Some(RunId::from_bits(3)));
    assert_eq!(of(&mut store, Which::Run(RunId::from_bits(2))), Some(RunId::from_bits(2)));
    assert_eq!(of(&mut store, Which::Run(RunId::from_bits(4))), None);
    store.remove(Table::Results, "nightly").unwrap();
    archived(&archive, "--input a", JobState::Canceled);
    assert!(ends(&mut store, 1), "by the archive");
}

#[test]
fn what_is_in_the_way_of_a_new_run_stops_neither_a_join_nor_a_result() {
    let data = tempfile::tempdir().unwrap();
    let (archive, mut store) = (Archive::new(data.path()), MemoryStore::new());
    let submit = |store: &mut MemoryStore, run| {
        let obstacle = Some("the output is in use".to_owned());
        super::admit(store, &archive, &submission("--input a", run), None, obstacle)
    };
    let refused = submit(&mut store, 1).unwrap_err();
    assert!(matches!(refused, SubmitError::Output(_)), "{refused}");
    assert_eq!(store.keys(Table::JobGraphs).unwrap(), Vec::<String>::new());
    admit(&mut store, &archive, &submission("--input a", 1), None).unwrap();
    assert!(matches!(submit(&mut store, 2), Ok(Admission::Again { .. })));
    store_result(&mut store, &submission("--input a", 1), &outcome(1, JobState::Finished)).unwrap();
    store.remove(Table::JobGraphs, "nightly").unwrap();
    assert!(matches!(submit(&mut store, 2), Ok(Admission::Ended(_))));
}

#[test]
fn rule_3_9_a_run_with_a_result_is_only_cleaned_up() {
    let data = tempfile::tempdir().unwrap();
    let archive = Archive::new(data.path());
    let mut store = MemoryStore::new();
    let first = submission("--input a", 1);
    admit(&mut store, &archive, &first, None).unwrap();
    store_result(&mut store, &first, &outcome(1, JobState::Failed)).unwrap();
    let again = admit(&mut store, &archive, &submission("--input a", 2), None).unwrap();
    assert!(
        matches!(again, Admission::Concluding(_, outcome) if outcome.state == JobState::Failed)
    );
}

#[test]
fn a_document_of_another_format_is_refused_with_both_named() {
    let data = tempfile::tempdir().unwrap();
    let archive = Archive::new(data.path());
    let mut store = MemoryStore::new();
    let document = StoredJob { format: 9, submission: submission("", 1) };
    store.put(Table::JobGraphs, "nightly", &encode(&document).unwrap()).unwrap();
    let text = admit(&mut store, &archive, &submission("", 2), None).unwrap_err().to_string();
    assert!(text.contains("format 9") && text.contains("reads 1"), "{text}");
}

/// What the directory of a run notes of `submission`; `begun` if a worker has stored something.
fn noted(data: &Path, submission: &JobSubmission, begun: bool) -> NotedRun {
    let directory = RunDirectory::lock(data, &submission.job).unwrap();
    let run = InterruptedRun {
        job: submission.job.clone(),
        job_name: submission.job_name.clone(),
        arguments: submission.arguments.clone(),
        settings: Vec::new(),
        ledger: None,
    };
    let noted = directory.new_run(run, StoreKind::Memory, submission);
    noted.write().unwrap();
    if begun {
        let worker = directory.shuffle().join(DataDirectoryId::from_bits(3).to_string());
        let run = worker.join(submission.run.to_string());
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join("0-0-0-7-2.0.partition"), "").unwrap();
    }
    noted
}

#[test]
fn rule_5_13_a_run_that_the_store_lost_goes_on_as_itself_if_it_had_begun() {
    let (first, second) = (submission("--input a", 1), submission("--input a", 2));
    for begun in [true, false] {
        let data = tempfile::tempdir().unwrap();
        let (archive, mut store) = (Archive::new(data.path()), MemoryStore::new());
        let noted = noted(data.path(), &first, begun);
        let admission = admit(&mut store, &archive, &second, Some(&noted)).unwrap();
        assert_eq!(matches!(admission, Admission::Again { lacks: None, .. }), begun);
        assert_eq!(matches!(admission, Admission::New(_)), !begun);
        assert_eq!(admission.accepted(), Some(&first));
        let again = admit(&mut store, &archive, &second, None).unwrap();
        assert_eq!(again.accepted(), Some(&first), "it is in the store from here on");
    }
}

#[test]
fn rule_5_13_the_new_term_is_above_those_that_were_noted_or_left_traces() {
    let (first, second) = (submission("--input a", 1), submission("--input a", 2));
    let data = tempfile::tempdir().unwrap();
    let archive = Archive::new(data.path());
    let mut noted = noted(data.path(), &first, true);
    noted.adopt(&first, 4).unwrap();
    let admit = |noted: &NotedRun| {
        let noted = (None, Some(noted.clone()));
        store_work::admit(&mut MemoryStore::new(), &archive, &second, noted, None).unwrap().0
    };
    assert_eq!(admit(&noted), 5, "as noted");
    noted.lacks("the store".to_owned());
    assert_eq!(admit(&noted), 8, "as a partition shows");
    let file = RunFile::read(&RunDirectory::of(data.path(), &first.job)).unwrap().unwrap();
    assert_eq!(file.identity().unwrap().term, 8, "it is noted before anybody leads");
}

#[test]
fn rule_5_12_a_damaged_document_is_told_and_what_is_noted_stands_in_for_it() {
    for table in [Table::JobGraphs, Table::Results] {
        let (first, second) = (submission("--input a", 1), submission("--input a", 2));
        let data = tempfile::tempdir().unwrap();
        let (archive, mut store) = (Archive::new(data.path()), MemoryStore::new());
        let noted = noted(data.path(), &first, false);
        admit(&mut store, &archive, &first, Some(&noted)).unwrap();
        store_result(&mut store, &first, &outcome(1, JobState::Failed)).unwrap();
        store.damage_document(table, "nightly");
        let admission = admit(&mut store, &archive, &second, Some(&noted)).unwrap();
        assert_eq!(admission.accepted(), Some(&first));
        match (table, admission) {
            (Table::Results, Admission::Again { lacks: Some(told), .. }) => {
                assert!(told.contains("document nightly of results"), "{told}");
            }
            (Table::JobGraphs, Admission::Concluding(_, outcome)) => {
                assert_eq!(outcome.state, JobState::Failed);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn rule_5_12_a_damage_for_which_nothing_stands_in_is_an_error() {
    let data = tempfile::tempdir().unwrap();
    let (archive, mut store) = (Archive::new(data.path()), MemoryStore::new());
    admit(&mut store, &archive, &submission("", 1), None).unwrap();
    store.damage_document(Table::JobGraphs, "nightly");
    let refused = admit(&mut store, &archive, &submission("", 2), None).unwrap_err();
    assert!(matches!(refused, SubmitError::Store(StoreError::Damaged { .. })), "{refused}");
}

#[test]
fn rule_3_9_a_run_whose_end_only_the_archive_knows_is_cleaned_up() {
    let (first, second) = (submission("--input a", 1), submission("--input a", 2));
    let data = tempfile::tempdir().unwrap();
    let (archive, mut store) = (Archive::new(data.path()), MemoryStore::new());
    archived(&archive, "--input a", JobState::Failed);
    let noted = noted(data.path(), &first, true);
    let admission = admit(&mut store, &archive, &second, Some(&noted)).unwrap();
    let Admission::Archived(accepted, ended) = admission else { panic!("{admission:?}") };
    assert_eq!((*accepted, ended.state), (first, JobState::Failed));
    let again = admit(&mut store, &archive, &second, Some(&noted)).unwrap();
    assert!(matches!(again, Admission::Concluding(..)), "{again:?}");
}

#[test]
fn rule_1_1_a_run_that_ended_is_not_begun_again_under_its_id() {
    let (first, second) = (submission("--input a", 1), submission("--input a", 2));
    let data = tempfile::tempdir().unwrap();
    let (archive, mut store) = (Archive::new(data.path()), MemoryStore::new());
    let noted = noted(data.path(), &first, true);
    store_result(&mut store, &first, &outcome(1, JobState::Failed)).unwrap();
    let admission = admit(&mut store, &archive, &second, Some(&noted)).unwrap();
    assert!(matches!(&admission, Admission::New(begun) if **begun == second), "{admission:?}");
}
