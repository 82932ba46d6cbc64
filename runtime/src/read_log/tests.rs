use super::*;
use crate::encode_batch;

const OLD: Epoch = Epoch::new(1, 0);
const NEW: Epoch = Epoch::new(2, 0);

/// A stored log in the making.
#[derive(Default)]
struct Log {
    batches: Vec<(bool, Vec<u8>)>,
}

impl Log {
    /// Adds events named `names`; `snapshot` is one.
    fn batch(mut self, epoch: Epoch, first: u64, names: &[&str]) -> Self {
        let events: Vec<JobEvent> = names.iter().copied().map(event).collect();
        self.batches.push((false, encode_batch(epoch, Lsn(first), &events).unwrap()));
        self
    }

    fn garbage(mut self) -> Self {
        self.batches.push((false, vec![0, 1, 0xc1]));
        self
    }

    /// The store found damage before the last batch.
    fn behind_damage(mut self) -> Self {
        self.batches.last_mut().unwrap().0 = true;
        self
    }

    fn read(&self) -> ReadLog {
        self.read_with(None)
    }

    fn read_with(&self, found: Option<&str>) -> ReadLog {
        let stored: Vec<StoredBatch<'_>> = (0..)
            .zip(&self.batches)
            .map(|(sequence, (follows_damage, bytes))| StoredBatch {
                position: LogPosition { segment: 2, sequence, checksum: 0 },
                follows_damage: *follows_damage,
                bytes,
            })
            .collect();
        read_log(&stored, found)
    }
}

fn event(name: &str) -> JobEvent {
    match name {
        "snapshot" => JobEvent::Snapshot { state: vec![] },
        name => JobEvent::FailureDecided { error: name.to_owned() },
    }
}

fn names(log: &ReadLog) -> String {
    let name = |found: &JobEvent| {
        if let JobEvent::FailureDecided { error } = found {
            return error.clone();
        }
        assert_eq!(*found, event("snapshot"));
        "snapshot".to_owned()
    };
    log.events.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn damage(log: &ReadLog) -> (&str, bool) {
    let defect = log.damage.as_ref().expect("damage");
    (&defect.text, defect.covered)
}

#[test]
fn a_whole_log_is_all_its_events() {
    let log = Log::default().batch(OLD, 0, &["a", "b"]).batch(OLD, 2, &[]).batch(NEW, 2, &["c"]);
    let read = log.read();
    assert_eq!((names(&read).as_str(), read.next, read.damage), ("a b c", Lsn(3), None));
    assert_eq!(read_log(&[], None), ReadLog::default());
}

#[test]
fn a_compacted_log_begins_with_its_snapshot() {
    let read = Log::default().batch(OLD, 7, &["z", "snapshot", "a"]).batch(OLD, 10, &["b"]).read();
    assert_eq!((names(&read).as_str(), read.next, read.damage), ("snapshot a b", Lsn(11), None));
}

#[test]
fn a_log_without_its_beginning_is_damaged() {
    let read = Log::default().batch(OLD, 7, &["a"]).read();
    let expected = "segment 2, batch 0: event 0 should follow, and event 7 does; \
                    1 batches from there on do not count";
    assert_eq!(damage(&read), (expected, false));
    assert_eq!((names(&read).as_str(), read.next), ("", Lsn(0)));
}

#[test]
fn rule_5_12_what_follows_a_bad_batch_does_not_count() {
    let log = Log::default().batch(OLD, 0, &["a"]).garbage().batch(OLD, 2, &["c"]);
    let read = log.batch(NEW, 3, &["d"]).read();
    assert_eq!((names(&read).as_str(), read.next), ("a", Lsn(1)));
    let (text, covered) = damage(&read);
    assert!(text.starts_with("segment 2, batch 1: a batch of version 1 cannot be decoded: "));
    assert!(text.ends_with("; 3 batches from there on do not count"), "{text}");
    assert!(!covered);
}

#[test]
fn rule_3_7_a_later_snapshot_stands_for_all_before_it() {
    let log = Log::default().batch(OLD, 0, &["a"]).garbage().batch(OLD, 2, &["c"]);
    let read = log.batch(NEW, 3, &["d", "snapshot", "e"]).batch(NEW, 6, &["f"]).read();
    assert_eq!((names(&read).as_str(), read.next), ("a snapshot e f", Lsn(6 + 1)));
    assert!(damage(&read).1);
}

#[test]
fn fault_6_a_missing_batch_is_a_gap_and_not_an_end() {
    let log = Log::default().batch(OLD, 0, &["a"]).batch(OLD, 3, &["d"]);
    assert!(!damage(&log.read()).1);
    let read = log.batch(OLD, 4, &["snapshot"]).read();
    assert_eq!(names(&read), "a snapshot");
    let expected = "segment 2, batch 1: event 1 should follow, and event 3 does; \
                    1 batches from there on do not count";
    assert_eq!(damage(&read), (expected, true));
}

#[test]
fn a_writer_that_had_read_the_same_valid_part_goes_on_behind_the_damage() {
    let log = Log::default().batch(OLD, 0, &["a"]).garbage().batch(NEW, 1, &["b"]);
    let read = log.read();
    assert_eq!((names(&read).as_str(), read.next), ("a b", Lsn(2)));
    assert!(damage(&read).1);
}

#[test]
fn damage_that_the_store_found_is_reported_with_what_follows_from_it() {
    let log = Log::default().batch(OLD, 0, &["a"]);
    assert_eq!(damage(&log.read_with(Some("bad checksum"))), ("bad checksum", false));

    let log = log.batch(OLD, 3, &["d"]).behind_damage();
    let expected = "bad checksum; then segment 2, batch 1: event 1 should follow, and event 3 \
                    does; 1 batches from there on do not count";
    assert_eq!(damage(&log.read_with(Some("bad checksum"))), (expected, false));

    let log = log.batch(OLD, 4, &["snapshot"]).behind_damage();
    let read = log.read_with(Some("bad checksum"));
    assert_eq!(names(&read), "a snapshot");
    let expected = "bad checksum; 1 batches from there on do not count";
    assert_eq!(damage(&read), (expected, true));
}

#[test]
fn rule_3_10_what_a_later_epoch_had_not_read_is_void() {
    let log = Log::default()
        .batch(OLD, 0, &["a"])
        .batch(OLD, 1, &["late"])
        .batch(NEW, 1, &["b"])
        .batch(OLD, 2, &["later"])
        .batch(NEW, 2, &["c"]);
    let read = log.read();
    assert_eq!((names(&read).as_str(), read.next, read.damage), ("a b c", Lsn(3), None));
}

#[test]
fn events_stored_again_count_once() {
    let log = Log::default().batch(OLD, 0, &["a"]).batch(OLD, 1, &["b", "c"]);
    let read = log.batch(OLD, 1, &["b", "c", "d"]).batch(OLD, 4, &["e"]).read();
    assert_eq!((names(&read).as_str(), read.next, read.damage), ("a b c d e", Lsn(5), None));
}

#[test]
fn a_later_epoch_does_not_store_again_what_it_had_read() {
    let log = Log::default().batch(OLD, 0, &["a"]).batch(NEW, 1, &["b"]);
    let read = log.batch(NEW, 0, &["other"]).read();
    assert_eq!(names(&read), "a b");
    assert!(!damage(&read).1);
}

#[test]
fn fault_11_a_batch_of_a_newer_program_ends_the_log_with_both_versions_named() {
    let mut log = Log::default().batch(OLD, 0, &["a"]).batch(OLD, 1, &["b"]);
    log.batches[1].1[1] = 3;
    let read = log.read();
    assert_eq!(names(&read), "a");
    assert!(damage(&read).0.contains("has version 3, and this program reads versions 1 to 2"));
}
