//! A damaged file costs its producer a second run, and nothing else.

use std::path::Path;

use proptest::prelude::*;

use super::*;

/// What reading a partition gave.
type ReadResult = Result<Vec<Vec<u8>>, FetchError>;

/// Reads what was sealed as `sealed` after `bytes` were put in its place, in this and the next life.
fn read_damaged(
    fixture: Fixture,
    path: &Path,
    bytes: &[u8],
    sealed: &FinishRecord,
) -> (Fixture, Vec<ReadResult>) {
    fs::write(path, bytes).unwrap();
    let read = |output| fixture.read(partition(sealed.attempt, output));
    let results = (0..sealed.outputs.len()).map(read).collect();
    let fixture = fixture.next_life();
    let inventory = fixture.inventory();
    for found in &inventory.finished {
        assert_eq!(found, sealed, "a damaged file proves something else");
    }
    // An empty log of finishes proves nothing and lacks nothing.
    let empty_log = sealed.outputs.is_empty() && bytes.is_empty();
    let told = inventory.finished.is_empty() != inventory.damaged.is_empty();
    assert!(empty_log || told, "{inventory:?}");
    (fixture, results)
}

/// Whether reading gave what was written; panics at anything but that or a tidy error.
fn is_right(result: &ReadResult, expected: &[u8]) -> bool {
    match result {
        Ok(blocks) => {
            assert_eq!(blocks, &[expected], "other bytes than were written");
            true
        }
        Err(FetchError::Gone { .. } | FetchError::Corrupt { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

fn only_file(fixture: &Fixture) -> PathBuf {
    let files = fixture.files();
    assert_eq!(files.len(), 1);
    fixture.run_path().join(&files[0])
}

#[test]
fn every_truncation_is_noticed() {
    let mut fixture = Fixture::new();
    let sealed = fixture.seal(attempt(0), 1);
    let path = only_file(&fixture);
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        let results;
        (fixture, results) = read_damaged(fixture, &path, &whole[..length], &sealed);
        assert!(!is_right(&results[0], b""), "{length}");
        assert!(fixture.inventory().finished.is_empty(), "{length}");
    }
}

#[test]
fn every_flipped_bit_is_noticed_or_harmless() {
    let mut fixture = Fixture::new();
    let sealed = fixture.seal(attempt(0), 1);
    let path = only_file(&fixture);
    let whole = fs::read(&path).unwrap();
    let expected = content(attempt(0), 0);
    let data_bytes = 8 + expected.len();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        let results;
        (fixture, results) = read_damaged(fixture, &path, &bytes, &sealed);
        let right = is_right(&results[0], &expected);
        // Damaged blocks are found by who reads them, all else by the inventory.
        assert!(!(right && at < data_bytes), "{at}");
        assert_eq!(fixture.inventory().finished.is_empty(), at >= data_bytes, "{at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_damage_to_a_file_of_several_regions_is_noticed(
        fill in proptest::collection::vec(any::<u8>(), 1..8),
        at in any::<prop::sample::Index>(),
        flip in 1_u8..,
        cut in any::<bool>(),
    ) {
        let fixture = Fixture::new();
        let mut writer =
            AttemptWriter::create(&fixture.directory, attempt(0), &outputs(&[2]), 0).unwrap();
        let blocks: Vec<_> = fill.iter().map(|fill| vec![*fill; 140_000]).collect();
        for block in &blocks {
            writer.write_block(0, 1, block, 1).unwrap();
        }
        writer.seal(record(attempt(0))).unwrap();
        let path = only_file(&fixture);
        let mut bytes = fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= flip;
        }
        fs::write(&path, &bytes).unwrap();
        match fixture.read(partition(attempt(0), 0)) {
            Ok(found) => prop_assert!(!cut && found == blocks),
            Err(error) => prop_assert!(matches!(error, FetchError::Corrupt { .. }), "{error}"),
        }
    }

    #[test]
    fn any_bytes_in_the_place_of_a_file_are_noticed(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        outputs in 0_usize..3,
    ) {
        let mut fixture = Fixture::new();
        let sealed = fixture.seal(attempt(0), outputs);
        for name in fixture.files() {
            let path = fixture.run_path().join(name);
            let whole = fs::read(&path).unwrap();
            let results;
            (fixture, results) = read_damaged(fixture, &path, &bytes, &sealed);
            for (output, result) in results.iter().enumerate() {
                is_right(result, &content(attempt(0), output));
            }
            prop_assert!(fixture.inventory().finished.is_empty());
            fs::write(&path, &whole).unwrap();
        }
    }
}

#[test]
fn a_flipped_bit_in_a_finish_file_voids_the_finish_and_deletes_nothing() {
    let mut fixture = Fixture::new();
    let sealed = fixture.seal(attempt(0), 2);
    let files = fixture.files();
    let path =
        fixture.run_path().join(files.iter().find(|name| name.ends_with(".finish")).unwrap());
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        (fixture, _) = read_damaged(fixture, &path, &bytes, &sealed);
        let damaged = fixture.inventory().damaged;
        assert_eq!(damaged.len(), 1, "{at}");
        assert_eq!((damaged[0].attempt, &damaged[0].path), (Some(attempt(0)), &path));
        assert_eq!(fixture.files(), files);
    }
}

#[test]
fn the_file_of_another_attempt_is_not_taken_for_this_one() {
    let fixture = Fixture::new();
    fixture.seal(attempt(0), 1);
    fixture.seal(attempt(1), 1);
    let path = |name: &str| fixture.run_path().join(name);
    let [first, second] = &fixture.files()[..] else { panic!("two files") };
    fs::copy(path(first), path(second)).unwrap();
    let error = fixture.read(partition(attempt(1), 0)).unwrap_err();
    assert!(error.to_string().contains("it holds 0/0#0@"), "{error}");
    let fixture = fixture.next_life();
    assert_eq!(fixture.inventory().finished.len(), 1);
}

#[test]
fn what_is_not_there_is_gone() {
    let fixture = Fixture::new();
    let error = fixture.read(partition(attempt(0), 0)).unwrap_err();
    assert!(matches!(error, FetchError::Gone { .. }), "{error}");
}
