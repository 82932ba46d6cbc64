//! Whoever connects to a cluster and has no business there: nothing but a line in the log comes of
//! it. `REGROW_CONNECTIONS` is how many connect, `REGROW_GARBAGE` how many of them say something.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "helpers of tests")]

use std::{
    cell::Cell,
    env, fs,
    io::{ErrorKind, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use crate::{
    roles::{DATA, address, leader, task_manager},
    sandbox::{Running, Sandbox},
};

/// How long an end that must come is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much the memory of a process may grow while strangers come and go.
const GROWTH_KB_MAX: u64 = 20 << 10;

fn number(name: &str, default: usize) -> usize {
    env::var(name).map_or(default, |text| text.parse().expect("it is a number"))
}

/// What a process takes of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Footprint {
    descriptors: usize,
    memory_kb: u64,
    threads: usize,
}

impl Footprint {
    fn of(process: &Running) -> Self {
        let path = |name: &str| format!("/proc/{}/{name}", process.id());
        let count = |name: &str| fs::read_dir(path(name)).expect("it lives").count();
        let status = fs::read_to_string(path("status")).expect("it lives");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = resident.and_then(|line| line.trim().strip_suffix(" kB"));
        Self {
            descriptors: count("fd"),
            memory_kb: memory.expect("it is told").parse().expect("it is a number"),
            threads: count("task"),
        }
    }
}

/// Waits until the process takes no more than `before`, but for some memory.
fn assert_flat(sandbox: &Sandbox, process: &Running, before: Footprint) {
    let last = Cell::new(before);
    sandbox.wait_until("all descriptors and threads are given back", |_| {
        let now = Footprint::of(process);
        if last.replace(now) != now {
            println!("{before:?}, now {now:?}");
        }
        now.descriptors <= before.descriptors && now.threads <= before.threads
    });
    let after = Footprint::of(process);
    assert!(after.memory_kb < before.memory_kb + GROWTH_KB_MAX, "{before:?}, then {after:?}");
}

/// Says `garbage`, and hears nothing but a first frame and the end.
fn say(address: &str, garbage: &[u8]) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
    // Refused in the middle of it, perhaps.
    drop(stream.write_all(garbage));
    drop(stream.shutdown(Shutdown::Write));
    match stream.read_to_end(&mut Vec::new()) {
        Ok(heard) => assert!(heard < 1 << 10, "{heard} bytes for a stranger"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
}

/// What strangers say: nothing, another protocol, frames that are too long, cut off or empty, and
/// noise.
fn garbage(index: usize) -> Vec<u8> {
    let noise =
        |seed: usize| (0..256).map(move |at| (seed * 31 + at * 17 + at * at).to_le_bytes()[0]);
    match index % 7 {
        0 => Vec::new(),
        1 => b"GET / HTTP/1.1\r\nHost: regrow\r\n\r\n".to_vec(),
        2 => vec![0xff; 64],
        3 => vec![0, 0, 0, 200, 1, 2, 3],
        4 => vec![0; 4_096],
        5 => [vec![0, 0, 1, 0], noise(index).collect()].concat(),
        _ => noise(index).collect(),
    }
}

#[test]
fn fault_42_45_strangers_leave_nothing_behind() {
    let sandbox = Sandbox::new();
    let manager = leader(&sandbox, "");
    let worker = task_manager(&sandbox, "");
    // Long enough for tasks to be in all slots at once: threads of slots start when they are needed.
    sandbox.fine(&format!("submit stages --stage 4x100ms {DATA}"));
    let job = format!("submit stages --stage 4x0s --stage 1x0s {DATA}");
    sandbox.fine(&job);
    let before = (Footprint::of(&manager), Footprint::of(&worker));
    let address = address(&manager);
    (0..number("REGROW_GARBAGE", 140)).for_each(|index| say(&address, &garbage(index)));
    for _ in 0..number("REGROW_CONNECTIONS", 500) {
        drop(TcpStream::connect(&address).expect("it listens"));
    }
    sandbox.fine(&job);
    assert_flat(&sandbox, &manager, before.0);
    assert_flat(&sandbox, &worker, before.1);
}

#[test]
fn fault_45_whoever_says_nothing_or_says_it_slowly_is_let_go_and_keeps_nobody_waiting() {
    let sandbox = Sandbox::new();
    let manager = leader(&sandbox, "-D heartbeat.interval=200ms -D heartbeat.timeout=2s");
    let _worker = task_manager(&sandbox, "");
    let job = format!("submit stages --stage 2x0s {DATA} -D client.leader-timeout=30s");
    sandbox.fine(&job);
    let before = Footprint::of(&manager);
    let address = address(&manager);
    let mut silent: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(&address).expect("it listens")).collect();
    for stream in &mut silent {
        // A frame that is promised, and its first byte: the rest never comes.
        stream.write_all(&[0, 0, 0, 100, 1]).expect("it takes bytes");
    }
    sandbox.fine(&job);
    for mut stream in silent {
        stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
        let heard = stream.read_to_end(&mut Vec::new());
        assert!(heard.is_ok(), "it is let go: {heard:?}");
    }
    assert_flat(&sandbox, &manager, before);
}

#[test]
fn fault_45_who_belongs_elsewhere_is_told_both_names_and_harms_nobody() {
    let sandbox = Sandbox::new();
    let mut manager = leader(&sandbox, "");
    let there = address(&manager);
    let mut stranger = task_manager(
        &sandbox,
        &format!(
            "-D high-availability.cluster-id=other -D jobmanager.rpc.addresses={there} \
             -D taskmanager.reconnect-grace=1s"
        ),
    );
    manager.until("the stranger is refused", |line| {
        line.contains("\"other\"") && line.contains("\"default\"")
    });
    stranger.until("it says why it has nothing to do", |line| {
        line.contains("still looking") && line.contains("\"default\"")
    });
    let standby = sandbox.regrow(&format!(
        "jobmanager {DATA} -D jobmanager.rpc.port=0 -D high-availability.cluster-id=other"
    ));
    assert_eq!(standby.code, Some(2), "{}", standby.err);
    assert!(standby.err.contains("cluster \"default\" is led there"), "{}", standby.err);
    let listed = sandbox.fine(&format!("list {DATA}"));
    assert_eq!(listed.out.trim(), "", "there is no job");
    assert!(!manager.listen().iter().any(|line| line.contains("a worker is connected")));
}
