//! What every store promises.

use regrow_protocol::{Epoch, RunId};
use regrow_store::{
    BATCH_BYTES_MAX, BatchPosition, EventStore, KEY_BYTES_MAX, Log, LogPlace, StoreError, Table,
    verify,
};

use crate::fixture::{EPOCH, Fixture, Kind, RUN, batch, batches};

// The same stories for each store, under a name of its own.
macro_rules! for_each_store {
    ($($story:ident)*) => {
        mod memory {
            $(#[test] fn $story() { super::$story(&super::Fixture::new(super::Kind::Memory)); })*
        }
        mod file {
            $(#[test] fn $story() { super::$story(&super::Fixture::new(super::Kind::File)); })*
        }
        mod sled {
            $(#[test] fn $story() { super::$story(&super::Fixture::new(super::Kind::Sled)); })*
        }
    };
}

for_each_store! {
    what_was_appended_is_read_in_order
    ten_thousand_appends_are_all_there
    a_log_that_is_read_in_parts_comes_back_once
    what_a_snapshot_replaced_between_two_parts_is_told
    a_large_batch_comes_back
    runs_do_not_mix
    an_unknown_run_has_an_empty_log
    an_older_epoch_is_refused_and_changes_nothing
    an_epoch_that_was_never_claimed_is_refused
    claims_outlive_their_handle
    terms_only_grow
    what_was_removed_before_a_snapshot_stays_away
    a_position_where_no_batch_stands_removes_nothing
    a_removed_log_leaves_nothing
    documents_come_back_and_go
    what_no_store_can_hold_is_refused
    the_sequence_goes_on_after_reopen
    a_store_without_damage_verifies
}

fn opened(fixture: &Fixture) -> Box<dyn EventStore> {
    let mut store = fixture.open();
    assert_eq!(store.open_log(RUN, EPOCH).unwrap(), Log::default());
    store
}

fn append(store: &mut dyn EventStore, numbers: std::ops::Range<u64>) -> Vec<BatchPosition> {
    numbers.map(|number| store.append(RUN, EPOCH, &batch(number)).unwrap()).collect()
}

fn what_was_appended_is_read_in_order(fixture: &Fixture) {
    let mut store = opened(fixture);
    let positions = append(&mut *store, 0..20);
    drop(store);
    let log = fixture.open().open_log(RUN, EPOCH.next_life()).unwrap();
    for (number, read) in log.batches.iter().enumerate() {
        assert_eq!(read.bytes, batch(number as u64));
        assert_eq!((read.position, read.epoch), (positions[number], EPOCH));
        assert_eq!(read.position.sequence, number as u64);
        assert!(!read.follows_damage);
    }
    assert_eq!((log.batches.len(), log.damage), (20, None));
}

fn ten_thousand_appends_are_all_there(fixture: &Fixture) {
    const COUNT: u64 = 10_000;
    let mut store = opened(fixture);
    append(&mut *store, 0..COUNT);
    drop(store);
    let read = batches(&mut *fixture.open(), RUN);
    assert!(read.into_iter().eq((0..COUNT).map(batch)));
}

fn a_log_that_is_read_in_parts_comes_back_once(fixture: &Fixture) {
    let mut store = opened(fixture);
    append(&mut *store, 0..15);
    let bytes_max = 700;
    let (mut place, mut read, mut parts) = (Some(LogPlace::default()), Vec::new(), 0);
    while let Some(from) = place {
        let part = store.read_part(RUN, from, bytes_max).unwrap();
        assert!(part.log.batches.iter().map(|batch| batch.bytes.len()).sum::<usize>() <= bytes_max);
        assert_eq!((part.start, &part.log.damage), (0, &None));
        read.extend(part.log.batches);
        (place, parts) = (part.next, parts + 1);
        if parts == 1 {
            append(&mut *store, 15..20);
        }
    }
    assert_eq!(read, store.read_log(RUN).unwrap().batches);
    assert!(parts > 4, "{parts}");
    let nothing = store.read_part(RunId::from_bits(77), LogPlace::default(), 9).unwrap();
    assert_eq!((nothing.log, nothing.next), (Log::default(), None));
}

fn what_a_snapshot_replaced_between_two_parts_is_told(fixture: &Fixture) {
    let mut store = opened(fixture);
    let positions = append(&mut *store, 0..9);
    let first = store.read_part(RUN, LogPlace::default(), batch(0).len()).unwrap();
    let next = first.next.unwrap();
    assert_eq!((first.start, next.sequence), (0, 1));
    store.remove_before(RUN, EPOCH, positions[5]).unwrap();
    let part = store.read_part(RUN, next, usize::MAX).unwrap();
    let sequences: Vec<u64> = part.log.batches.iter().map(|it| it.position.sequence).collect();
    assert_eq!((part.start, sequences), (5, vec![5, 6, 7, 8]));
    assert_eq!((part.log.damage, part.next), (None, None));
}

fn a_large_batch_comes_back(fixture: &Fixture) {
    let large: Vec<u8> = (0..9_000_000_u32).map(|byte| (byte % 251) as u8).collect();
    let mut store = opened(fixture);
    store.append(RUN, EPOCH, &large).unwrap();
    store.append(RUN, EPOCH, b"small").unwrap();
    store.append(RUN, EPOCH, &large).unwrap();
    drop(store);
    assert!(batches(&mut *fixture.open(), RUN) == [large.clone(), b"small".to_vec(), large]);
}

fn runs_do_not_mix(fixture: &Fixture) {
    let mut store = fixture.open();
    let runs: Vec<RunId> = [0, 1, u128::MAX - 1, u128::MAX].map(RunId::from_bits).to_vec();
    for run in &runs {
        store.open_log(*run, EPOCH).unwrap();
    }
    for round in 0..5_u8 {
        for (index, run) in runs.iter().enumerate() {
            store.append(*run, EPOCH, &[round, u8::try_from(index).unwrap()]).unwrap();
        }
    }
    assert_eq!(store.runs().unwrap(), runs);
    for (index, run) in runs.iter().enumerate() {
        let index = u8::try_from(index).unwrap();
        let expected: Vec<Vec<u8>> = (0..5).map(|round| vec![round, index]).collect();
        assert_eq!(batches(&mut *store, *run), expected);
    }
}

fn an_unknown_run_has_an_empty_log(fixture: &Fixture) {
    let mut store = fixture.open();
    assert_eq!(store.read_log(RUN).unwrap(), Log::default());
    assert_eq!(store.runs().unwrap(), []);
    store.remove_log(RUN).unwrap();
}

fn an_older_epoch_is_refused_and_changes_nothing(fixture: &Fixture) {
    let mut store = opened(fixture);
    let position = append(&mut *store, 0..2)[1];
    let successor = Epoch::new(1, 1);
    store.open_log(RUN, successor).unwrap();
    let refused = store.append(RUN, EPOCH, b"late").unwrap_err();
    let StoreError::Fenced { refused, highest } = refused else { panic!("{refused}") };
    assert_eq!((refused, highest), (EPOCH, successor));
    let removal = store.remove_before(RUN, EPOCH, position);
    assert!(matches!(removal, Err(StoreError::Fenced { .. })));
    assert_eq!(batches(&mut *store, RUN).len(), 2);
    assert_eq!(store.append(RUN, successor, b"next").unwrap().sequence, 2);
}

fn an_epoch_that_was_never_claimed_is_refused(fixture: &Fixture) {
    let mut store = fixture.open();
    assert!(matches!(store.append(RUN, EPOCH, b"x"), Err(StoreError::Fenced { .. })));
    store.open_log(RUN, EPOCH).unwrap();
    let higher = Epoch::new(2, 0);
    assert!(matches!(store.append(RUN, higher, b"x"), Err(StoreError::Fenced { .. })));
    assert!(matches!(store.open_log(RUN, EPOCH), Err(StoreError::Fenced { .. })));
    assert_eq!(batches(&mut *store, RUN), Vec::<Vec<u8>>::new());
}

fn claims_outlive_their_handle(fixture: &Fixture) {
    for life in 0..5 {
        let mut store = fixture.open();
        if life > 0 {
            let older = store.open_log(RUN, Epoch::new(3, life - 1));
            assert!(matches!(older, Err(StoreError::Fenced { .. })), "{life}");
        }
        store.open_log(RUN, Epoch::new(3, life)).unwrap();
        store.append(RUN, Epoch::new(3, life), b"x").unwrap();
    }
    let mut store = fixture.open();
    assert!(matches!(store.open_log(RUN, Epoch::new(2, 9)), Err(StoreError::Fenced { .. })));
    let log = store.open_log(RUN, Epoch::new(4, 0)).unwrap();
    let lives: Vec<u32> = log.batches.iter().map(|batch| batch.epoch.life).collect();
    assert_eq!(lives, [0, 1, 2, 3, 4]);
}

fn terms_only_grow(fixture: &Fixture) {
    let mut terms = Vec::new();
    for _ in 0..3 {
        let mut store = fixture.open();
        terms.extend([store.claim_term().unwrap(), store.claim_term().unwrap()]);
    }
    assert_eq!(terms, [1, 2, 3, 4, 5, 6]);
    let mut store = fixture.open();
    assert_eq!([3, 9].map(|floor| store.claim_term_above(floor).unwrap()), [7, 10]);
}

fn what_was_removed_before_a_snapshot_stays_away(fixture: &Fixture) {
    let mut store = opened(fixture);
    let positions = append(&mut *store, 0..30);
    store.remove_before(RUN, EPOCH, positions[10]).unwrap();
    store.remove_before(RUN, EPOCH, positions[25]).unwrap();
    let expected: Vec<Vec<u8>> = (25..30).map(batch).collect();
    assert_eq!(batches(&mut *store, RUN), expected);
    drop(store);
    let mut store = fixture.open();
    assert_eq!(batches(&mut *store, RUN), expected);
    store.open_log(RUN, EPOCH.next_life()).unwrap();
    assert_eq!(store.append(RUN, EPOCH.next_life(), b"x").unwrap().sequence, 30);
}

fn a_position_where_no_batch_stands_removes_nothing(fixture: &Fixture) {
    let mut store = opened(fixture);
    let last = append(&mut *store, 0..5)[4];
    let wrong = [
        BatchPosition { sequence: 5, ..last },
        BatchPosition { checksum: last.checksum ^ 1, ..last },
        BatchPosition { sequence: 3, ..last },
    ];
    for position in wrong {
        let result = store.remove_before(RUN, EPOCH, position);
        assert!(matches!(result, Err(StoreError::Invalid { .. })), "{position:?}");
    }
    assert_eq!(batches(&mut *store, RUN).len(), 5);
    append(&mut *store, 5..6);
}

fn a_removed_log_leaves_nothing(fixture: &Fixture) {
    let mut store = opened(fixture);
    append(&mut *store, 0..5);
    store.remove_log(RUN).unwrap();
    let is_gone = |store: &mut dyn EventStore| {
        assert_eq!(store.runs().unwrap(), []);
        assert_eq!(store.read_log(RUN).unwrap(), Log::default());
        assert!(matches!(store.append(RUN, EPOCH, b"x"), Err(StoreError::Fenced { .. })));
    };
    is_gone(&mut *store);
    drop(store);
    is_gone(&mut *fixture.open());
}

fn documents_come_back_and_go(fixture: &Fixture) {
    let mut store = fixture.open();
    let keys = ["a", "job_1-X", "Ünïcode/../.", &"k".repeat(KEY_BYTES_MAX)];
    for key in keys {
        store.put(Table::JobGraphs, key, b"first").unwrap();
        store.put(Table::JobGraphs, key, key.as_bytes()).unwrap();
    }
    store.put(Table::Results, "a", b"").unwrap();
    drop(store);
    let mut store = fixture.open();
    for key in keys {
        let document = store.get(Table::JobGraphs, key).unwrap();
        assert_eq!(document.as_deref(), Some(key.as_bytes()));
    }
    let mut sorted = keys.map(str::to_owned);
    sorted.sort_unstable();
    assert_eq!(store.keys(Table::JobGraphs).unwrap(), sorted);
    assert_eq!(store.get(Table::Results, "a").unwrap(), Some(Vec::new()));
    assert_eq!(store.get(Table::Results, "b").unwrap(), None);
    store.remove(Table::Results, "a").unwrap();
    store.remove(Table::Results, "a").unwrap();
    drop(store);
    assert_eq!(fixture.open().keys(Table::Results).unwrap(), Vec::<String>::new());
}

fn what_no_store_can_hold_is_refused(fixture: &Fixture) {
    let mut store = opened(fixture);
    let length = usize::try_from(BATCH_BYTES_MAX + 1).unwrap();
    assert!(matches!(store.append(RUN, EPOCH, &vec![0; length]), Err(StoreError::Invalid { .. })));
    assert!(matches!(store.append(RUN, EPOCH, &[]), Err(StoreError::Invalid { .. })));
    for key in ["", &"k".repeat(KEY_BYTES_MAX + 1)] {
        let result = store.put(Table::Results, key, b"x");
        assert!(matches!(result, Err(StoreError::Invalid { .. })));
    }
    append(&mut *store, 0..1);
}

fn the_sequence_goes_on_after_reopen(fixture: &Fixture) {
    let mut store = opened(fixture);
    append(&mut *store, 0..3);
    store.reopen().unwrap();
    assert_eq!(append(&mut *store, 3..4)[0].sequence, 3);
    assert_eq!(batches(&mut *store, RUN).len(), 4);
}

fn a_store_without_damage_verifies(fixture: &Fixture) {
    let mut store = opened(fixture);
    append(&mut *store, 0..3);
    let reports = verify(&mut *store).unwrap();
    let bytes: usize = (0..3).map(|number| batch(number).len()).sum();
    assert_eq!((reports.len(), reports[0].run, reports[0].batches), (1, RUN, 3));
    assert_eq!((reports[0].bytes, &reports[0].damage), (bytes as u64, &None));
}
