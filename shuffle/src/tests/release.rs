//! What is released goes, all of it and nothing else.

use super::*;

#[test]
fn a_release_takes_the_named_attempts_and_may_be_repeated() {
    let mut fixture = Fixture::new();
    for subtask in 0..6 {
        fixture.seal(attempt(subtask), subtask as usize % 3);
    }
    for _ in 0..2 {
        fixture.directory.release(&[attempt(0), attempt(1), attempt(2), attempt(77)]).unwrap();
        let kept = fixture.inventory();
        let kept: Vec<_> = kept.finished.iter().map(|record| record.attempt.subtask).collect();
        assert_eq!(kept, [3, 4, 5]);
        fixture = fixture.next_life();
    }
    let gone = fixture.read(partition(attempt(1), 0)).unwrap_err();
    assert!(matches!(gone, FetchError::Gone { .. }), "{gone}");
    assert_eq!(fixture.read(partition(attempt(4), 0)).unwrap(), [content(attempt(4), 0)]);
}

#[test]
fn rule_4_1_a_release_that_is_cut_short_leaves_no_proof() {
    let fixture = Fixture::new();
    fixture.seal(attempt(0), 2);
    // A directory in the place of the file that goes last makes its removal fail.
    let obstacle = fixture.run_path().join("0-0-0-1-0.0.partition");
    fs::remove_file(&obstacle).unwrap();
    fs::create_dir(&obstacle).unwrap();
    let error = fixture.directory.release(&[attempt(0)]).unwrap_err();
    assert_eq!(error.path, obstacle);
    assert_eq!(fixture.files(), ["0-0-0-1-0.0.partition"]);
    assert!(fixture.inventory().finished.is_empty());
    fs::remove_dir(&obstacle).unwrap();
    fixture.directory.release(&[attempt(0)]).unwrap();
    assert_eq!(fixture.inventory(), RunInventory::default());
}

#[test]
fn promise_p5_nothing_is_left_of_a_released_run() {
    let fixture = Fixture::new();
    for subtask in 0..3 {
        fixture.seal(attempt(subtask), subtask as usize);
    }
    fs::write(fixture.run_path().join("unknown"), "x").unwrap();
    assert!(!fixture.directory.remove_if_empty().unwrap());
    for _ in 0..2 {
        fixture.directory.release_run(RUN).unwrap();
        assert_eq!(fixture.directory.runs().unwrap(), []);
        assert_eq!(fixture.inventory(), RunInventory::default());
    }
    assert!(fixture.directory.remove_if_empty().unwrap());
    assert!(DataDirectory::take_over(fixture.root.path()).unwrap().is_empty());
    let left: Vec<_> = fs::read_dir(fixture.root.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the lock of the root stays: {left:?}");
}

#[test]
fn promise_p5_a_writer_that_outlives_its_run_leaves_nothing() {
    for outputs in 0..3 {
        let fixture = Fixture::new();
        let mut writer = fixture.writer(attempt(0), &vec![2; outputs]);
        writer.spill_directory().unwrap();
        for output in 0..outputs {
            writer.write_block(output, 0, b"late", 1).unwrap();
        }
        fixture.directory.release_run(RUN).unwrap();
        let refused = writer.seal(record(attempt(0)));
        assert!(matches!(refused, Err(WriteError::Released { run: RUN })), "{refused:?}");
        assert!(fixture.directory.remove_if_empty().unwrap());
    }
}

#[test]
fn fault_36_the_release_of_one_run_does_not_touch_another() {
    let fixture = Fixture::new();
    fixture.seal(attempt(0), 1);
    let run = RunId::from_bits(0xdef);
    let other = fixture.seal(ExecutionAttemptId { run, ..attempt(0) }, 1);
    fixture.directory.release_run(RUN).unwrap();
    assert_eq!(fixture.directory.inventory(run).unwrap().finished, [other]);
}

#[test]
fn a_question_about_an_unknown_run_leaves_no_trace() {
    let fixture = Fixture::new();
    assert_eq!(fixture.inventory(), RunInventory::default());
    assert_eq!(fixture.directory.finish_of(attempt(0)).unwrap(), None);
    fixture.directory.release(&[attempt(0)]).unwrap();
    assert!(fixture.directory.remove_if_empty().unwrap());
}

#[test]
fn who_reads_while_a_partition_is_released_gets_the_data_or_that_it_is_gone() {
    let fixture = Fixture::new();
    for round in 0..50 {
        fixture.seal(attempt(round), 1);
        let directory = Arc::clone(&fixture.directory);
        let releaser = std::thread::spawn(move || directory.release(&[attempt(round)]).unwrap());
        loop {
            match fixture.read(partition(attempt(round), 0)) {
                Ok(blocks) => assert_eq!(blocks, [content(attempt(round), 0)]),
                Err(FetchError::Gone { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        releaser.join().unwrap();
    }
}
