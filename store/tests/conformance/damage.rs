//! Flipped bits, cut files, lost files: the right data, a reported damage or a clear error.

use std::{
    fs,
    path::{Path, PathBuf},
};

use proptest::{
    prelude::Rng,
    test_runner::{RngAlgorithm, TestRng},
};
use regrow_protocol::RunId;
use regrow_store::{EventStore, Log, LogDamage, SledStore, StoreError, Table};

use crate::fixture::{EPOCH, Fixture, Kind, RUN, batch, batches};

// The last batch is short, so that each cut of it can be tried.
const COUNT: u64 = 66;

fn filled(kind: Kind) -> Fixture {
    let fixture = Fixture::new(kind);
    let mut store = fixture.open();
    store.open_log(RUN, EPOCH).unwrap();
    for number in 0..COUNT {
        store.append(RUN, EPOCH, &batch(number)).unwrap();
    }
    store.put(Table::JobGraphs, "job", b"graph").unwrap();
    fixture
}

fn segments(fixture: &Fixture) -> Vec<PathBuf> {
    let segments = files(&fixture.path()).into_iter();
    segments.filter(|path| path.extension().is_some_and(|end| end == "log")).collect()
}

fn open_log(fixture: &Fixture) -> (Box<dyn EventStore>, Log) {
    let mut store = fixture.open();
    let log = store.open_log(RUN, EPOCH.next_life()).unwrap();
    (store, log)
}

fn assert_right(log: &Log) {
    for read in &log.batches {
        assert_eq!(read.bytes, batch(read.position.sequence));
    }
}

#[test]
fn a_tail_torn_at_any_byte_is_the_end_and_writing_goes_on() {
    let fixture = filled(Kind::File);
    let segment = segments(&fixture).remove(0);
    let whole = fs::read(&segment).unwrap();
    let last_frame = 56 + batch(COUNT - 1).len();
    let claims = files(&fixture.path());
    for cut in whole.len() - last_frame..whole.len() {
        for added in files(&fixture.path()) {
            if !claims.contains(&added) {
                fs::remove_file(added).unwrap();
            }
        }
        fs::write(&segment, &whole[..cut]).unwrap();
        let (mut store, log) = open_log(&fixture);
        assert_right(&log);
        assert_eq!(log.batches.len() as u64, COUNT - 1);
        let damage = log.damage.map(|damage| (damage.sequence, damage.reason));
        let torn = Some((COUNT - 1, LogDamage::INCOMPLETE_END.to_owned()));
        assert_eq!(damage, if cut == whole.len() - last_frame { None } else { torn });
        store.append(RUN, EPOCH.next_life(), &batch(COUNT - 1)).unwrap();
        drop(store);
        assert_eq!(batches(&mut *fixture.open(), RUN).len() as u64, COUNT);
    }
}

#[test]
fn log_7_an_empty_segment_is_nothing() {
    let fixture = filled(Kind::File);
    let segment = segments(&fixture).remove(0);
    fs::write(segment.with_file_name(format!("segment-{:020}.log", 1)), b"").unwrap();
    let (mut store, log) = open_log(&fixture);
    assert_eq!((log.batches.len() as u64, log.damage), (COUNT, None));
    let position = store.append(RUN, EPOCH.next_life(), b"x").unwrap();
    assert_eq!((position.segment, position.sequence), (2, COUNT));
}

// Three lives, each of which writes a segment of ten batches.
fn three_segments() -> Fixture {
    let fixture = Fixture::new(Kind::File);
    let mut epoch = EPOCH;
    for life in 0..3 {
        let mut store = fixture.open();
        store.open_log(RUN, epoch).unwrap();
        for number in life * 10..(life + 1) * 10 {
            store.append(RUN, epoch, &batch(number)).unwrap();
        }
        epoch = epoch.next_life();
    }
    fixture
}

#[test]
fn log_6_a_cut_or_missing_earlier_segment_is_a_gap_and_not_an_end() {
    let cuts: [fn(&Path); 3] = [
        |segment| fs::remove_file(segment).unwrap(),
        |segment| fs::write(segment, b"").unwrap(),
        |segment| {
            let bytes = fs::read(segment).unwrap();
            fs::write(segment, &bytes[..bytes.len() - 5]).unwrap();
        },
    ];
    for (cut, first_missing) in cuts.into_iter().zip([10, 10, 19]) {
        let fixture = three_segments();
        cut(&segments(&fixture)[1]);
        let log = fixture.open().read_log(RUN).unwrap();
        assert_right(&log);
        assert_eq!(log.damage.unwrap().sequence, first_missing);
        for read in &log.batches {
            assert_eq!(read.follows_damage, read.position.sequence >= first_missing);
        }
        assert_eq!(log.batches.last().unwrap().position.sequence, 29);
    }
}

#[test]
fn batches_behind_a_flipped_bit_are_found_and_marked() {
    let fixture = filled(Kind::File);
    let segment = segments(&fixture).remove(0);
    let mut bytes = fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&segment, bytes).unwrap();
    let (mut store, log) = open_log(&fixture);
    assert_right(&log);
    assert_eq!(log.batches.len() as u64, COUNT - 1);
    let damage = log.damage.unwrap();
    assert!(damage.offset.unwrap() <= middle as u64 && damage.segment == 0);
    let marked = log.batches.iter().filter(|batch| batch.follows_damage).count() as u64;
    assert_eq!(marked, COUNT - 1 - damage.sequence);
    assert_eq!(store.append(RUN, EPOCH.next_life(), b"x").unwrap().sequence, COUNT);
}

#[test]
fn a_damaged_last_batch_keeps_its_number() {
    let fixture = filled(Kind::File);
    let segment = segments(&fixture).remove(0);
    let mut bytes = fs::read(&segment).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&segment, bytes).unwrap();
    let (mut store, log) = open_log(&fixture);
    assert_eq!(log.damage.unwrap().sequence, COUNT - 1);
    assert_eq!(store.append(RUN, EPOCH.next_life(), b"x").unwrap().sequence, COUNT);
    let log = store.read_log(RUN).unwrap();
    assert!(log.damage.is_some() && log.batches.last().unwrap().follows_damage);
}

#[test]
fn log_1_a_garbage_length_on_disk_is_a_damage() {
    for length in [0, 1 << 31, 1 << 63, u64::MAX] {
        let fixture = filled(Kind::File);
        let segment = segments(&fixture).remove(0);
        let mut bytes = fs::read(&segment).unwrap();
        bytes[8..16].copy_from_slice(&u64::to_le_bytes(length));
        fs::write(&segment, bytes).unwrap();
        let log = fixture.open().read_log(RUN).unwrap();
        assert_right(&log);
        assert_eq!((log.batches.len() as u64, log.damage.unwrap().sequence), (COUNT - 1, 0));
    }
}

#[test]
fn a_damaged_document_is_named() {
    let fixture = filled(Kind::File);
    let document = fixture.path().join("documents/job-graphs/job");
    let mut bytes = fs::read(&document).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&document, bytes).unwrap();
    let error = fixture.open().get(Table::JobGraphs, "job").unwrap_err();
    assert!(error.to_string().contains("document job of job-graphs"), "{error}");
}

#[test]
fn recovery_5_12_one_bad_log_does_not_stop_another() {
    let fixture = filled(Kind::File);
    let other = RunId::from_bits(8);
    let mut store = fixture.open();
    store.open_log(other, EPOCH).unwrap();
    store.append(other, EPOCH, b"fine").unwrap();
    drop(store);
    fs::write(segments(&fixture).remove(0), [7; 500]).unwrap();
    let mut store = fixture.open();
    assert_eq!(batches(&mut *store, other), [b"fine"]);
    assert_eq!(store.read_log(RUN).unwrap().damage.unwrap().sequence, 0);
}

#[test]
fn random_damage_never_gives_wrong_data() {
    const ROUNDS: u32 = 60;
    // The kinds differ in what a reader can still tell, never in whether it may be wrong.
    for kind in Kind::PERSISTENT {
        let original = filled(kind);
        drop(original.open());
        let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        for round in 0..ROUNDS {
            let copy = tempfile::tempdir().unwrap();
            copy_all(&original.path(), copy.path());
            let what = damage_one_file(copy.path(), &mut random);
            let story = format!("{kind:?}, round {round}: {what}");
            read_damaged(kind, copy.path(), &story);
        }
    }
}

fn read_damaged(kind: Kind, path: &Path, what: &str) {
    let mut store = match kind.try_open(path) {
        Ok(store) => store,
        Err(StoreError::Damaged { .. } | StoreError::Format { .. }) => return,
        Err(error) => panic!("{what}: {error}"),
    };
    match store.get(Table::JobGraphs, "job") {
        Ok(document) => assert_eq!(document.as_deref(), Some(&b"graph"[..]), "{what}"),
        Err(error) => assert!(matches!(error, StoreError::Damaged { .. }), "{what}: {error}"),
    }
    let log = store.open_log(RUN, EPOCH.next_life()).unwrap();
    assert_right(&log);
    let is_complete = log.batches.len() as u64 == COUNT;
    // A file that ends with a whole batch is the one damage that a file cannot tell.
    let ends_early = kind == Kind::File && what.contains("cut");
    assert!(is_complete || log.damage.is_some() || ends_early, "{what}: {:?}", log.damage);
    store.append(RUN, EPOCH.next_life(), b"next").unwrap();
    let next = store.read_log(RUN).unwrap().batches;
    assert_eq!(next.last().unwrap().bytes, b"next", "{what}");
}

fn damage_one_file(directory: &Path, random: &mut TestRng) -> String {
    let mut below = |end: usize| usize::try_from(random.next_u64()).unwrap() % end;
    let candidates = files(directory);
    let path = &candidates[below(candidates.len())];
    let mut bytes = fs::read(path).unwrap();
    if bytes.is_empty() {
        return format!("{} is empty", path.display());
    }
    let at = below(bytes.len());
    let what = if below(4) == 0 {
        bytes.truncate(at);
        format!("{} cut at {at}", path.display())
    } else {
        bytes[at] ^= 1 << below(8);
        format!("{} flipped at {at}", path.display())
    };
    fs::write(path, bytes).unwrap();
    what
}

#[test]
fn what_sled_forgets_silently_is_reported() {
    let fixture = filled(Kind::Sled);
    let data = fixture.path().join("database-000000/db");
    fs::write(&data, &fs::read(&data).unwrap()[..100]).unwrap();
    let mut store = SledStore::open(&fixture.path()).unwrap();
    assert_eq!(store.runs().unwrap(), [RUN]);
    let log = store.open_log(RUN, EPOCH.next_life()).unwrap();
    assert_eq!(log.damage.unwrap().reason, format!("batches 0 to {} are missing", COUNT - 1));
    let error = store.get(Table::JobGraphs, "job").unwrap_err();
    assert!(error.to_string().contains("document job"), "{error}");
    assert!(matches!(store.open_log(RUN, EPOCH), Err(StoreError::Fenced { .. })));
    assert_eq!(store.append(RUN, EPOCH.next_life(), b"x").unwrap().sequence, COUNT);
}

#[test]
fn what_a_killed_sled_leaves_half_written_does_not_keep_it_from_opening() {
    let fixture = filled(Kind::Sled);
    let database = fixture.path().join("database-000000");
    fs::write(database.join("snap.0000000000001000.generating"), b"torn").unwrap();
    fs::write(database.join("conf"), b"segm").unwrap();
    fs::create_dir(fixture.path().join("database-000001.new")).unwrap();
    assert_eq!(batches(&mut *fixture.open(), RUN).len() as u64, COUNT);
    assert!(!fixture.path().join("database-000001.new").exists());
}

#[test]
fn a_database_that_was_made_and_never_used_is_made_again() {
    let fixture = Fixture::new(Kind::Sled);
    let database = fixture.path().join("database-000000");
    fs::create_dir_all(database.join("blobs")).unwrap();
    fs::write(database.join("conf"), b"segm").unwrap();
    fs::write(database.join("db"), b"").unwrap();
    let mut store = fixture.open();
    store.open_log(RUN, EPOCH).unwrap();
    store.append(RUN, EPOCH, b"x").unwrap();
}

#[test]
fn compaction_keeps_what_lives_and_gives_the_rest_back() {
    let fixture = Fixture::new(Kind::Sled);
    let mut store = SledStore::open(&fixture.path()).unwrap();
    for run in 0..200 {
        let run = RunId::from_bits(run);
        store.open_log(run, EPOCH).unwrap();
        store.append(run, EPOCH, &vec![7; 20_000]).unwrap();
        store.remove_log(run).unwrap();
    }
    store.open_log(RUN, EPOCH).unwrap();
    store.append(RUN, EPOCH, b"alive").unwrap();
    store.put(Table::Results, "job", b"result").unwrap();
    let (before, after) = store.compact().unwrap();
    assert!(after < before / 2 && after < 300_000, "{before} to {after}");
    store.append(RUN, EPOCH, b"goes on").unwrap();
    drop(store);
    let mut store = fixture.open();
    assert_eq!(batches(&mut *store, RUN), [&b"alive"[..], b"goes on"]);
    assert_eq!(store.get(Table::Results, "job").unwrap().unwrap(), b"result");
    assert_eq!(store.runs().unwrap(), [RUN]);
}

fn copy_all(from: &Path, to: &Path) {
    for path in files(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(path, target).unwrap();
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort_unstable();
    found
}
