//! What a new life knows of where former workers listen.

use std::net::SocketAddr;

use super::{
    bench::{Bench, stages},
    *,
};

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// A job with an attempt on each of two workers, the first of which said where it listens.
fn on_two_workers() -> Bench {
    let mut bench = Bench::new(stages(&[2]));
    bench.persist();
    for id in [1, 2] {
        bench.feed(Input::WorkerConnected { worker: WorkerId::from_bits(id) });
        bench.serve_at(id, at(u16::try_from(id).unwrap()), &[]);
        bench.grant(id, 1);
        bench.persist();
    }
    assert_eq!(bench.submitted().len(), 2);
    bench
}

#[test]
fn rule_4_5_a_new_life_knows_where_former_workers_listen() {
    let mut bench = on_two_workers();
    bench.kill(PreviousLife::Unknown);
    assert_eq!(bench.job.former_addresses(), [at(1), at(2)]);
}

#[test]
fn rule_4_5_who_was_lost_is_not_called() {
    let mut bench = on_two_workers();
    bench.lose_worker(1);
    bench.persist();
    bench.kill(PreviousLife::Unknown);
    assert_eq!(bench.job.former_addresses(), [at(2)]);
}

#[test]
fn a_life_of_before_addresses_were_noted_calls_nobody() {
    let mut bench = Bench::new(stages(&[1]));
    bench.run_worker(1, 1);
    bench.kill(PreviousLife::Unknown);
    assert_eq!(bench.job.former_addresses(), []);
}
