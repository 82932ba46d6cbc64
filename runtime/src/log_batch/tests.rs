mod samples;

use std::fmt::Write as _;

use expect_test::expect_file;
use proptest::prelude::*;
use regrow_protocol::WorkerId;
use samples::{events_of_listings, one_of_each_event, worker_used};

use super::*;

const EPOCH: Epoch = Epoch::new(3, 1);

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(48) {
        for byte in line {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push('\n');
    }
    text
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|char| !char.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// The newest golden file; `UPDATE_EXPECT=1` writes it. One that a released version wrote is never
/// written again: a change gets another file, and all stay readable.
#[test]
fn the_bytes_of_version_2_never_change() {
    let bytes = encode_batch(EPOCH, Lsn(40), &one_of_each_event()).unwrap();
    expect_file!["../../tests/golden/event_batch_v2.hex"].assert_eq(&hex(&bytes));
}

#[test]
fn the_approximate_size_of_an_event_is_right_within_a_factor_of_four() {
    const COUNT: usize = 50;
    for event in one_of_each_event().into_iter().chain(events_of_listings()) {
        let batch = encode_batch(EPOCH, Lsn(0), &vec![event.clone(); COUNT]).unwrap();
        let exact = (batch.len() / COUNT) as u64;
        let approximate = event.approximate_bytes();
        let fits = approximate <= 4 * exact.max(100) && exact <= 4 * approximate;
        assert!(fits, "{exact} bytes, not about {approximate}: {event:?}");
    }
}

#[test]
fn batches_of_released_versions_stay_readable() {
    for (version, golden) in [
        (1, include_str!("../../tests/golden/event_batch_v1.hex")),
        (2, include_str!("../../tests/golden/event_batch_v2.hex")),
    ] {
        let batch = decode_batch(&from_hex(golden)).unwrap();
        assert_eq!((batch.version, batch.epoch, batch.first), (version, EPOCH, Lsn(40)));
        assert_eq!(batch.events, one_of_each_event());
    }
}

#[test]
fn a_batch_without_finishes_is_one_that_version_1_can_read() {
    let mut events = one_of_each_event();
    events.retain(|event| !matches!(event, JobEvent::ExecutionVertexFinished { .. }));
    let bytes = encode_batch(EPOCH, Lsn(40), &events).unwrap();
    assert_eq!(bytes[..2], [0, 1]);
    assert_eq!(decode_batch(&bytes).unwrap().events, events);
}

#[test]
fn the_bytes_of_listings_never_change() {
    let bytes = encode_batch(EPOCH, Lsn(40), &events_of_listings()).unwrap();
    expect_file!["../../tests/golden/event_batch_v1_listings.hex"].assert_eq(&hex(&bytes));
    let golden = from_hex(include_str!("../../tests/golden/event_batch_v1_listings.hex"));
    assert_eq!(decode_batch(&golden).unwrap().events, events_of_listings());
}

#[test]
fn the_bytes_of_a_worker_with_a_shuffle_service_never_change() {
    let events = [worker_used(Some(WorkerId::from_bits(0x5e)))];
    let bytes = encode_batch(EPOCH, Lsn(40), &events).unwrap();
    expect_file!["../../tests/golden/event_batch_v1_services.hex"].assert_eq(&hex(&bytes));
    let golden = from_hex(include_str!("../../tests/golden/event_batch_v1_services.hex"));
    assert_eq!(decode_batch(&golden).unwrap().events, events);
}

#[test]
fn fields_that_a_later_version_adds_are_skipped() {
    #[derive(Serialize)]
    struct LaterBody {
        added_before: Vec<u32>,
        epoch: Epoch,
        first: Lsn,
        events: Vec<LaterEvent>,
        added_behind: &'static str,
    }
    #[derive(Serialize)]
    enum LaterEvent {
        WorkerLost { worker: WorkerId, added: Option<u64> },
    }
    let worker = WorkerId::from_bits(5);
    let body = LaterBody {
        added_before: vec![1, 2],
        epoch: EPOCH,
        first: Lsn(9),
        events: vec![LaterEvent::WorkerLost { worker, added: Some(1) }],
        added_behind: "more",
    };
    let bytes = [&PLAIN.to_be_bytes(), encode(&body).unwrap().as_slice()].concat();
    assert_eq!(decode_batch(&bytes).unwrap().events, [JobEvent::WorkerLost { worker }]);
}

#[test]
fn fault_11_a_newer_version_is_refused_with_both_versions_named() {
    let mut bytes = encode_batch(EPOCH, Lsn(0), &[]).unwrap();
    bytes[1] = 9;
    assert_eq!(
        decode_batch(&bytes).unwrap_err().to_string(),
        "a batch has version 9, and this program reads versions 1 to 2: \
         use the program that wrote it, or a newer one"
    );
}

#[test]
fn fault_1_garbage_lengths_are_an_error() {
    let batch = encode_batch(EPOCH, Lsn(0), &[]).unwrap();
    let (_, head) = batch.split_last().unwrap();
    for events in [
        [0xdd, 0xff, 0xff, 0xff, 0xff].as_slice(),
        &[0xdd, 0x80, 0, 0, 0],
        &[0x91, 0x81, 0xdb, 0xff, 0xff, 0xff, 0xff],
        &[0xc6, 0xff, 0xff, 0xff, 0xff],
    ] {
        let error = decode_batch(&[head, events].concat()).unwrap_err();
        assert!(matches!(error, BatchError::Malformed { version: 1, .. }), "{error}");
    }
    assert!(matches!(decode_batch(&[0]), Err(BatchError::TooShort { length: 1 })));
}

#[test]
fn a_batch_cut_anywhere_is_an_error() {
    let bytes = encode_batch(EPOCH, Lsn(40), &one_of_each_event()).unwrap();
    for length in 0..bytes.len() {
        assert!(decode_batch(&bytes[..length]).is_err(), "{length} bytes");
    }
}

proptest! {
    #[test]
    fn any_bytes_decode_or_fail(
        index in any::<prop::sample::Index>(),
        garbage in proptest::collection::vec(any::<u8>(), 1..16),
    ) {
        let mut bytes = encode_batch(EPOCH, Lsn(40), &one_of_each_event()).unwrap();
        let start = index.index(bytes.len());
        for (byte, new) in bytes.iter_mut().skip(start).zip(garbage) {
            *byte = new;
        }
        let _ = decode_batch(&bytes);
    }
}
