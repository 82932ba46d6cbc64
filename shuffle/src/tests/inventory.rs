//! What a data directory proves.

use super::*;
use crate::DirectoryError;

fn finished(fixture: &Fixture) -> Vec<FinishRecord> {
    let inventory = fixture.inventory();
    assert_eq!(inventory.damaged, []);
    inventory.finished
}

#[test]
fn rule_4_1_finishes_with_any_number_of_outputs_are_proven_in_every_life() {
    let mut fixture = Fixture::new();
    let sealed: Vec<_> = (0..4).map(|n| fixture.seal(attempt(n), n as usize)).collect();
    for _ in 0..3 {
        assert_eq!(finished(&fixture), sealed);
        for record in &sealed {
            assert_eq!(fixture.directory.finish_of(record.attempt).unwrap().as_ref(), Some(record));
        }
        assert_eq!(fixture.directory.runs().unwrap(), [RUN]);
        fixture = fixture.next_life();
    }
}

#[test]
fn rule_4_1_a_second_seal_of_an_attempt_changes_nothing() {
    for outputs in 0..3 {
        let fixture = Fixture::new();
        let late = fixture.writer(attempt(0), &vec![2; outputs]);
        let sealed = fixture.seal(attempt(0), outputs);
        let files = fixture.files();
        let second = FinishRecord { plan: PlanId(99), ..record(attempt(0)) };
        assert_eq!(late.seal(second).unwrap(), sealed);
        assert_eq!(fixture.files(), files);
        assert_eq!(finished(&fixture), [sealed]);
        let fixture = fixture.next_life();
        for output in 0..outputs {
            let found = fixture.read(partition(attempt(0), output)).unwrap();
            assert_eq!(found, [content(attempt(0), output)]);
        }
    }
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let fixture = Fixture::new();
    let mut writer =
        AttemptWriter::create(&fixture.directory, attempt(0), &outputs(&[2, 2]), 10).unwrap();
    for subpartition in [0, 1, 0] {
        writer.write_block(0, subpartition, b"some bytes", 1).unwrap();
    }
    let spill = writer.spill_directory().unwrap().to_owned();
    fs::write(spill.join("run-0"), "sorted").unwrap();
    assert_eq!(fixture.files().len(), 2);
    drop(writer);
    assert_eq!(fixture.files(), [""; 0]);
    assert_eq!(fixture.inventory(), RunInventory::default());
}

#[test]
fn a_spill_directory_goes_with_the_seal() {
    let fixture = Fixture::new();
    let mut writer = fixture.writer(attempt(0), &[1]);
    let spill = writer.spill_directory().unwrap().to_owned();
    assert_eq!(writer.spill_directory().unwrap(), spill);
    writer.seal(record(attempt(0))).unwrap();
    assert!(!spill.exists());
}

#[test]
fn an_output_without_blocks_is_a_partition() {
    let fixture = Fixture::new();
    let sealed = fixture.writer(attempt(0), &[2]).seal(record(attempt(0))).unwrap();
    assert!(fixture.read(partition(attempt(0), 0)).unwrap().is_empty());
    assert_eq!(finished(&fixture.next_life()), [sealed]);
}

#[test]
fn rule_5_15_files_that_were_removed_or_cut_are_noticed_at_the_next_question() {
    for outputs in 0..3 {
        for cut in [false, true] {
            let fixture = Fixture::new();
            fixture.seal(attempt(0), outputs);
            let path = fixture.run_path().join(&fixture.files()[0]);
            if cut {
                fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(3).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
            assert_eq!(fixture.directory.finish_of(attempt(0)).unwrap(), None);
            let inventory = fixture.inventory();
            assert!(inventory.finished.is_empty());
            assert_eq!(inventory.damaged[0].path, path);
            // The attempt may be sealed again, and counts again.
            let sealed = fixture.seal(attempt(0), outputs);
            assert_eq!(fixture.inventory().finished, std::slice::from_ref(&sealed));
            assert_eq!(fixture.next_life().inventory().finished, [sealed]);
        }
    }
}

#[test]
fn promise_p1_what_was_away_is_told_as_there_when_it_is_back() {
    for outputs in 0..3 {
        for depth in 0..3 {
            let fixture = Fixture::new();
            let sealed = fixture.seal(attempt(0), outputs);
            let first = fixture.run_path().join(&fixture.files()[0]);
            let away = first.ancestors().nth(depth).unwrap().to_owned();
            let elsewhere = fixture.root.path().join("elsewhere");
            fs::rename(&away, &elsewhere).unwrap();
            for _ in 0..3 {
                let inventory = fixture.inventory();
                assert_eq!((inventory.finished.len(), inventory.damaged.len()), (0, 1));
            }
            fs::rename(&elsewhere, &away).unwrap();
            let inventory = fixture.inventory();
            assert_eq!(inventory.finished, std::slice::from_ref(&sealed), "{outputs} {depth}");
            assert_eq!(inventory.damaged, []);
            // What was released then is gone for good.
            fs::rename(&away, &elsewhere).unwrap();
            assert!(fixture.inventory().finished.is_empty());
            fs::rename(&elsewhere, &away).unwrap();
            fixture.directory.release(&[attempt(0)]).unwrap();
            assert_eq!(fixture.inventory(), RunInventory::default());
            assert_eq!(fixture.next_life().inventory(), RunInventory::default());
        }
    }
}

#[test]
fn promise_p4_what_cannot_be_looked_at_is_not_taken_for_lost() {
    let fixture = Fixture::new();
    let sealed = fixture.seal(attempt(0), 1);
    let (run, elsewhere) = (fixture.run_path(), fixture.root.path().join("elsewhere"));
    fs::rename(&run, &elsewhere).unwrap();
    // A link to itself: the system gives up on it.
    std::os::unix::fs::symlink(&run, &run).unwrap();
    let error = fixture.directory.inventory(RUN).unwrap_err();
    assert!(error.to_string().starts_with("cannot look at"), "{error}");
    fixture.directory.finish_of(attempt(0)).unwrap_err();
    fs::remove_file(&run).unwrap();
    fs::rename(&elsewhere, &run).unwrap();
    assert_eq!(fixture.inventory().finished, [sealed]);
}

#[test]
fn promise_p1_a_directory_that_is_away_at_the_first_question_is_not_taken_for_empty() {
    let fixture = Fixture::new();
    let sealed = fixture.seal(attempt(0), 1);
    let fixture = fixture.next_life();
    let data = fixture.run_path().parent().unwrap().to_owned();
    let elsewhere = fixture.root.path().join("elsewhere");
    fs::rename(&data, &elsewhere).unwrap();
    fixture.directory.inventory(RUN).unwrap_err();
    let run = fixture.directory.run(RUN);
    run.inventory().unwrap_err();
    fs::rename(&elsewhere, &data).unwrap();
    assert_eq!(fixture.inventory().finished, [sealed]);
}

#[test]
fn fault_33_a_partition_without_a_finish_record_proves_nothing_and_stays() {
    let fixture = Fixture::new();
    fixture.seal(attempt(0), 2);
    let finish = fixture.files().into_iter().find(|name| name.ends_with(".finish")).unwrap();
    fs::remove_file(fixture.run_path().join(finish)).unwrap();
    let fixture = fixture.next_life();
    let inventory = fixture.inventory();
    assert!(inventory.finished.is_empty());
    assert_eq!(inventory.damaged[0].reason, "its attempt has no finish record");
    assert_eq!(fixture.files().len(), 2);
    fixture.directory.release(&[attempt(0)]).unwrap();
    assert_eq!(fixture.files(), [""; 0]);
}

#[test]
fn fault_33_a_new_life_removes_unsealed_files_only() {
    let fixture = Fixture::new();
    fixture.seal(attempt(0), 1);
    let run = fixture.run_path();
    for name in ["0-1-0-1-0.0.tmp", "0-1-0-1-0.tmp", "notes.txt"] {
        fs::write(run.join(name), "x").unwrap();
    }
    fs::create_dir_all(run.join("0-1-0-1-0.1.spill/deep")).unwrap();
    let data = run.parent().unwrap().to_owned();
    fs::create_dir_all(data.join(format!("{RUN}.released/deep"))).unwrap();
    fs::create_dir(data.join("lost+found")).unwrap();
    let fixture = fixture.next_life();
    assert_eq!(fixture.files(), ["0-0-0-1-0.0.partition", "0-1-0-1-0.tmp", "notes.txt"]);
    assert!(data.join("lost+found").exists() && !data.join(format!("{RUN}.released")).exists());
    assert_eq!(fixture.inventory().damaged.len(), 2);
}

#[test]
fn rule_1_5_a_directory_in_use_is_not_taken_over() {
    let fixture = Fixture::new();
    assert!(DataDirectory::take_over(fixture.root.path()).unwrap().is_empty());
    // A writer keeps it in use, even when its owner is gone.
    let Fixture { root, directory } = fixture;
    let writer = AttemptWriter::create(&directory, attempt(0), &[], 0).unwrap();
    drop(directory);
    assert!(DataDirectory::take_over(root.path()).unwrap().is_empty());
    drop(writer);
    assert_eq!(DataDirectory::take_over(root.path()).unwrap().len(), 1);
}

#[test]
fn rule_1_5_a_directory_is_made_once() {
    let fixture = Fixture::new();
    let again = DataDirectory::create(fixture.root.path(), fixture.directory.id());
    let Err(DirectoryError::Disk(error)) = again else { panic!("{again:?}") };
    assert!(error.to_string().starts_with("cannot make data directory"), "{error}");
}

#[test]
fn slot_threads_seal_into_one_log() {
    let fixture = Fixture::new();
    std::thread::scope(|scope| {
        for slot in 0..4 {
            let fixture = &fixture;
            let attempts = (slot * 200..(slot + 1) * 200).map(attempt);
            scope.spawn(move || attempts.for_each(|attempt| drop(fixture.seal(attempt, 0))));
        }
    });
    assert_eq!(fixture.files(), ["finishes.log"]);
    assert_eq!(finished(&fixture).len(), 800);
    assert_eq!(finished(&fixture.next_life()).len(), 800);
}
