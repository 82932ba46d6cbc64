//! Stories about partitions that are read over TCP.

mod proxy;
mod served;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

use regrow_protocol::{DataDirectoryId, Role};

use self::{
    proxy::{Harm, Proxy},
    served::{Served, hello, introduce, listen, read_all, reader, reader_with_window, reads},
};
use super::*;
use crate::{RemoteReader, ServerLimits};

/// Longer than any wait of a test.
const GRACE: Duration = Duration::from_secs(20);

/// Waits for a condition.
fn until(condition: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !condition() {
        assert!(began.elapsed() < GRACE, "waited in vain");
        thread::yield_now();
    }
}

/// Seals an attempt with one output of `blocks` blocks of `bytes` bytes in each of 4 subpartitions.
fn seal(fixture: &Fixture, subtask: u32, blocks: u32, bytes: usize) -> PartitionId {
    let mut writer = fixture.writer(attempt(subtask), &[4]);
    for block in 0..blocks {
        for subpartition in 0..4 {
            let byte = u8::try_from((subtask + 3 * block + 7 * subpartition) % 251).unwrap();
            writer.write_block(0, subpartition, &vec![byte; bytes + block as usize], 1).unwrap();
        }
    }
    writer.seal(record(attempt(subtask))).unwrap();
    partition(attempt(subtask), 0)
}

#[test]
fn what_is_read_over_tcp_is_what_is_read_from_the_file() {
    let fixture = Fixture::new();
    let mut partitions: Vec<PartitionId> =
        (0..6).map(|subtask| seal(&fixture, subtask, subtask * 3, 5_000)).collect();
    partitions.push(seal(&fixture, 6, 1, 3 << 20));
    let served = Served::new(&fixture.directory);
    for (range, window, count) in
        [(1..2, 1, 2), (0..4, 1_000, 3), (2..4, 60_000, 7), (0..4, 1 << 20, 7)]
    {
        let (window, partitions) = ((served.address, window), &partitions[..count]);
        let mut reader = reader_with_window(reads(GRACE), window, partitions, range.clone());
        for partition in partitions {
            assert_same_blocks(&mut reader, &fixture, *partition, range.clone());
        }
    }
}

fn assert_same_blocks(
    remote: &mut RemoteReader,
    fixture: &Fixture,
    partition: PartitionId,
    range: std::ops::Range<u32>,
) {
    let range = SubpartitionRange { start: range.start, end: range.end };
    let (root, id) = (fixture.root.path(), fixture.directory.id());
    let mut local = PartitionReader::open(root, id, partition, range).unwrap();
    assert_eq!(remote.open_next().unwrap(), local.records());
    let (mut block, mut locally) = (Vec::new(), Vec::new());
    while local.next_block(&mut locally).unwrap() {
        assert!(remote.next_block(&mut block).unwrap());
        assert_eq!(block, locally);
    }
    assert!(!remote.next_block(&mut block).unwrap());
    assert!(!remote.next_block(&mut block).unwrap(), "the end stays the end");
}

#[test]
fn more_partitions_than_one_request_names_come_on_one_connection() {
    let fixture = Fixture::new();
    let partitions: Vec<PartitionId> =
        (0..1_030).map(|subtask| seal(&fixture, subtask, 1, 10)).collect();
    let served = Served::new(&fixture.directory);
    let proxy = Proxy::new(served.address, Vec::new());
    let mut reader = reader(reads(GRACE), proxy.address, &partitions, 1..2);
    let blocks = read_all(&mut reader, partitions.len()).unwrap();
    let first: Vec<u8> = blocks.iter().map(|block| block[0]).collect();
    let expected: Vec<u8> = (0..1_030).map(|it| u8::try_from((it + 7) % 251).unwrap()).collect();
    assert_eq!((first, proxy.connections.load(Ordering::Relaxed)), (expected, 1));
}

#[test]
fn a_slow_reader_stops_its_server() {
    let fixture = Fixture::new();
    let partitions = [seal(&fixture, 0, 100, 20_000)];
    let served = Served::new(&fixture.directory);
    let proxy = Proxy::new(served.address, Vec::new());
    let window = 100_000;
    let (address, range) = ((proxy.address, window), 0..4);
    let mut reader = reader_with_window(reads(GRACE), address, &partitions, range);
    reader.open_next().unwrap();
    let (mut block, mut taken) = (Vec::new(), 0);
    // Frames, what was opened, the index, and the block that is being read.
    let overhead = 30_000;
    until(|| proxy.passed.load(Ordering::Acquire) > window / 2);
    while reader.next_block(&mut block).unwrap() {
        taken += block.len() as u64;
        let passed = proxy.passed.load(Ordering::Acquire);
        assert!(passed <= taken + window + overhead, "{passed} were sent, {taken} taken");
    }
    assert!(taken > 80 * window / 2);
}

#[test]
fn a_broken_connection_is_made_again_and_each_block_comes_once() {
    let fixture = Fixture::new();
    let partitions: Vec<PartitionId> = (0..3).map(|it| seal(&fixture, it, 3, 40)).collect();
    let served = Served::new(&fixture.directory);
    let expected = read_all(&mut reader(reads(GRACE), served.address, &partitions, 0..4), 3);
    let expected = expected.unwrap();
    // All over the stream, and beyond.
    for byte in (0..2_800).step_by(7) {
        let proxy = Proxy::new(served.address, vec![Harm::Cut(byte), Harm::Cut(byte / 2)]);
        let mut reader = reader(reads(GRACE), proxy.address, &partitions, 0..4);
        assert_eq!(read_all(&mut reader, 3).unwrap(), expected, "cut at {byte}");
    }
}

#[test]
fn fault_38_a_bit_that_flips_on_the_way_is_asked_for_again() {
    let fixture = Fixture::new();
    let partitions = [seal(&fixture, 0, 2, 30)];
    let served = Served::new(&fixture.directory);
    let expected = read_all(&mut reader(reads(GRACE), served.address, &partitions, 0..4), 1);
    let expected = expected.unwrap();
    let mut patient = reads(GRACE);
    patient.silence_timeout = Duration::from_millis(50);
    for byte in (0..600).step_by(2) {
        let proxy = Proxy::new(served.address, vec![Harm::Flip(byte)]);
        let mut reader = reader(patient.clone(), proxy.address, &partitions, 0..4);
        // Other bytes are never given. A flip may make a refusal of a message, which is believed.
        match read_all(&mut reader, 1) {
            Ok(blocks) => assert_eq!(blocks, expected, "flipped at {byte}"),
            Err(error) => panic!("flipped at {byte}: {error}"),
        }
    }
}

#[test]
fn fault_38_a_bit_that_is_always_wrong_is_damage_and_named() {
    let fixture = Fixture::new();
    let first = seal(&fixture, 0, 2, 3_000);
    let second = seal(&fixture, 1, 2, 3_000);
    let path = fixture.run_path().join("1-0-0-1-0.0.partition");
    assert!(!path.exists(), "vertex 0, subtask 1");
    let path = fixture.run_path().join("0-1-0-1-0.0.partition");
    let mut bytes = fs::read(&path).unwrap();
    bytes[4_000] ^= 4;
    fs::write(&path, bytes).unwrap();
    let served = Served::new(&fixture.directory);
    let mut reader = reader(reads(GRACE), served.address, &[first, second], 0..4);
    let error = read_all(&mut reader, 2).unwrap_err();
    assert!(matches!(error, FetchError::Corrupt { partition, .. } if partition == second));
    let text = error.to_string();
    assert!(text.contains("wrong checksum, twice"), "{text}");
    assert!(text.contains(&served.address.to_string()), "{text}");
}

#[test]
fn a_file_with_a_damaged_end_is_named_by_its_server() {
    let fixture = Fixture::new();
    let damaged = seal(&fixture, 0, 2, 30);
    let path = fixture.run_path().join("0-0-0-1-0.0.partition");
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 40] ^= 1;
    fs::write(&path, bytes).unwrap();
    let served = Served::new(&fixture.directory);
    let error = reader(reads(GRACE), served.address, &[damaged], 0..4).open_next().unwrap_err();
    let FetchError::Corrupt { path: place, .. } = &error else { panic!("{error}") };
    assert!(place.display().to_string().contains(&path.display().to_string()), "{error}");
}

#[test]
fn a_partition_released_in_the_middle_is_read_on_and_gone_for_the_next() {
    let fixture = Fixture::new();
    let partitions = [seal(&fixture, 0, 50, 20_000), seal(&fixture, 1, 1, 10)];
    let served = Served::new(&fixture.directory);
    let window = (served.address, 50_000);
    let mut reader = reader_with_window(reads(GRACE), window, &partitions, 0..4);
    reader.open_next().unwrap();
    let mut block = Vec::new();
    assert!(reader.next_block(&mut block).unwrap());
    fixture.directory.release(&[attempt(0), attempt(1)]).unwrap();
    let mut blocks = 1;
    while reader.next_block(&mut block).unwrap() {
        blocks += 1;
    }
    assert_eq!(blocks, 200);
    let error = reader.open_next().unwrap_err();
    assert!(matches!(error, FetchError::Gone { partition, .. } if partition == partitions[1]));
}

#[test]
fn a_server_that_restarts_is_read_on() {
    let fixture = Fixture::new();
    let partitions: Vec<PartitionId> = (0..2).map(|it| seal(&fixture, it, 20, 20_000)).collect();
    let served = Served::new(&fixture.directory);
    let port = served.address.port();
    let window = (served.address, 50_000);
    let mut reader = reader_with_window(reads(GRACE), window, &partitions, 0..4);
    reader.open_next().unwrap();
    let mut block = Vec::new();
    assert!(reader.next_block(&mut block).unwrap());
    drop(served);
    let restart = {
        let directory = Arc::clone(&fixture.directory);
        thread::spawn(move || Served::with(&directory, ServerLimits::default(), port))
    };
    let mut blocks = 1;
    while reader.next_block(&mut block).unwrap() {
        blocks += 1;
    }
    assert_eq!((blocks, read_all(&mut reader, 1).unwrap().len()), (80, 80));
    drop(restart.join().unwrap());
}

#[test]
fn a_reader_that_rests_loses_its_connection_and_goes_on() {
    let fixture = Fixture::new();
    let partitions = [seal(&fixture, 0, 50, 20_000)];
    let idle_timeout = Duration::from_millis(20);
    let limits = ServerLimits { idle_timeout, ..ServerLimits::default() };
    let served = Served::with(&fixture.directory, limits, 0);
    let window = (served.address, 50_000);
    // No grace: the first try after a rest needs none.
    let mut reader = reader_with_window(reads(Duration::ZERO), window, &partitions, 0..4);
    reader.open_next().unwrap();
    let (mut block, mut blocks) = (Vec::new(), 0);
    while reader.next_block(&mut block).unwrap() {
        blocks += 1;
        if blocks % 60 == 0 {
            until(|| served.server.connections_open() == 0);
        }
    }
    assert_eq!(blocks, 200);
}

#[test]
fn a_reader_too_many_waits_for_its_turn() {
    let fixture = Fixture::new();
    let partitions = [seal(&fixture, 0, 50, 20_000)];
    let limits = ServerLimits { connections_max: 1, ..ServerLimits::default() };
    let served = Served::with(&fixture.directory, limits, 0);
    let window = (served.address, 50_000);
    let mut first = reader_with_window(reads(GRACE), window, &partitions, 0..4);
    first.open_next().unwrap();
    let mut second = reader(reads(Duration::ZERO), served.address, &partitions, 0..4);
    let error = second.open_next().unwrap_err();
    assert!(matches!(error, FetchError::Unreachable { .. }), "{error}");
    drop(first);
    let mut third = reader(reads(GRACE), served.address, &partitions, 0..4);
    assert_eq!(read_all(&mut third, 1).unwrap().len(), 200);
}

#[test]
fn fault_39_a_reader_of_an_older_epoch_and_a_wrong_range_are_refused_for_good() {
    let fixture = Fixture::new();
    let partitions = [seal(&fixture, 0, 1, 10)];
    let served = Served::new(&fixture.directory);
    let error = reader(reads(GRACE), served.address, &partitions, 0..9).open_next().unwrap_err();
    assert!(matches!(error, FetchError::OutOfRange { subpartitions: 4, .. }), "{error}");
    served.server.raise(RUN, Epoch::new(1, 1));
    served.server.raise(RUN, Epoch::new(1, 0));
    let error = reader(reads(GRACE), served.address, &partitions, 0..4).open_next().unwrap_err();
    assert!(matches!(error, FetchError::Stale { known, .. } if known == Epoch::new(1, 1)));
    served.server.forget(RUN);
    reader(reads(GRACE), served.address, &partitions, 0..4).open_next().unwrap();
}

#[test]
fn a_server_of_another_directory_says_nothing_of_the_partition() {
    let (fixture, root) = (Fixture::new(), tempfile::tempdir().unwrap());
    let partitions = [seal(&fixture, 0, 1, 10)];
    let other = DataDirectory::create(root.path(), DataDirectoryId::from_bits(0xe)).unwrap();
    let served = Served::new(&other);
    let brief = reads(Duration::from_millis(30));
    let error = reader(brief, served.address, &partitions, 0..4).open_next().unwrap_err();
    assert!(matches!(error, FetchError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("does not hold its data directory"), "{error}");
}

#[test]
fn nobody_and_strangers_are_unreachable_with_what_was_found() {
    let fixture = Fixture::new();
    let partitions = [seal(&fixture, 0, 1, 10)];
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut brief = reads(Duration::from_millis(30));
    brief.silence_timeout = Duration::from_millis(30);
    let found = |address| {
        let error = reader(brief.clone(), address, &partitions, 0..4).open_next().unwrap_err();
        assert!(matches!(error, FetchError::Unreachable { .. }), "{error}");
        error.to_string()
    };
    let text = found(closed);
    assert!(text.contains("refused") && text.contains(&closed.to_string()), "{text}");
    let other = regrow_protocol::Hello::new("other".to_owned(), None, Role::JobManager);
    let leads = regrow_protocol::Hello::new("c".to_owned(), None, Role::JobManager);
    for (hello, expected) in [(other, "\"other\""), (leads, "serves no partitions")] {
        let (address, stop, thread) = listen(0, move |mut stream| {
            introduce(&mut stream, Role::PartitionReader, &hello);
        });
        let text = found(address);
        assert!(text.contains(expected), "{text}");
        stop.store(true, Ordering::Release);
        drop(std::net::TcpStream::connect(address));
        thread.join().unwrap();
    }
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = found(mute.local_addr().unwrap());
    assert!(text.contains("said nothing for 30 ms"), "{text}");
}

#[test]
fn a_reader_that_waits_hears_that_it_is_to_stop() {
    let fixture = Fixture::new();
    let partitions = [seal(&fixture, 0, 1, 10)];
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for address in [mute.local_addr().unwrap(), closed] {
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let mut reader = served::stoppable(reads(GRACE), address, &partitions, &stop);
        let waiting = thread::spawn(move || reader.open_next());
        stop.store(true, Ordering::Release);
        let error = waiting.join().unwrap().unwrap_err();
        assert!(matches!(error, FetchError::Stopped { .. }), "{error}");
    }
}

#[test]
fn fault_45_garbage_ends_its_connection_and_nothing_else() {
    let fixture = Fixture::new();
    let partitions = [seal(&fixture, 0, 1, 10)];
    let served = Served::new(&fixture.directory);
    let garbage: [&[u8]; 5] =
        [b"", b"GET / HTTP/1.1\r\n", &[0xff; 100], &[0, 0, 0, 3, 0, 1, 2], &[0, 0, 0, 2, 1, 7]];
    for bytes in garbage {
        let mut stream = std::net::TcpStream::connect(served.address).unwrap();
        let ours = regrow_protocol::Hello::new("c".to_owned(), None, Role::PartitionReader);
        assert!(introduce(&mut stream, hello().role, &ours));
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        // Closed by the server: an error or an end, and no byte.
        assert_eq!(stream.read(&mut [0; 10]).unwrap_or(0), 0);
    }
    until(|| served.server.connections_open() == 0);
    read_all(&mut reader(reads(GRACE), served.address, &partitions, 0..4), 1).unwrap();
}

#[test]
fn many_readers_at_once_have_one_window_each() {
    let fixture = Fixture::new();
    let partitions = [seal(&fixture, 0, 10, 20_000)];
    let served = Served::new(&fixture.directory);
    // The long version is run alone, by hand: it needs many descriptors, and weighs the process.
    let weighed = std::env::var("REGROW_READERS").ok().map(|count| count.parse().unwrap());
    let count = weighed.unwrap_or(100);
    let before = resident_kib();
    let mut block = Vec::new();
    let mut readers: Vec<_> = (0..count)
        .map(|_| reader_with_window(reads(GRACE), (served.address, 30_000), &partitions, 0..4))
        .collect();
    for reader in &mut readers {
        reader.open_next().unwrap();
        assert!(reader.next_block(&mut block).unwrap());
    }
    assert_eq!(served.server.connections_open(), readers.len());
    if weighed.is_some() {
        let grown = resident_kib() - before;
        assert!(grown < 256 * count, "{count} readers and their server took {grown} KiB");
    }
    for reader in &mut readers {
        let mut blocks = 1;
        while reader.next_block(&mut block).unwrap() {
            blocks += 1;
        }
        assert_eq!(blocks, 40);
    }
    readers.clear();
    until(|| served.server.connections_open() == 0);
}

/// Memory of this process.
fn resident_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
