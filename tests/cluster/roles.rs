//! The roles of a cluster, started in a sandbox as processes of their own.

use std::time::{Duration, Instant};

use crate::sandbox::{Running, Sandbox};

/// Where the processes of a sandbox keep their data; workers and clients find the leader there.
pub(crate) const DATA: &str = "--data-dir cluster";

/// Starts a `JobManager` on a port that the system chooses, with further `flags`, and waits until it
/// listens. It says on standard error what happens, as a log of level `info`.
pub(crate) fn job_manager(sandbox: &Sandbox, flags: &str) -> Running {
    let mut manager = sandbox
        .start(&format!("REGROW_LOG=info jobmanager {DATA} -D jobmanager.rpc.port=0 {flags}"));
    manager.until("it listens", |line| line.starts_with("listening on "));
    manager
}

/// Starts a `JobManager` and waits until it leads.
pub(crate) fn leader(sandbox: &Sandbox, flags: &str) -> Running {
    let mut manager = job_manager(sandbox, flags);
    takes_over(&mut manager);
    manager
}

/// Starts a `JobManager` and waits until it stands by.
pub(crate) fn standby(sandbox: &Sandbox, flags: &str) -> Running {
    let mut manager = job_manager(sandbox, flags);
    manager.until("it stands by", |line| line.starts_with("standing by"));
    manager
}

/// Waits until a standby leads.
pub(crate) fn takes_over(manager: &mut Running) {
    manager.until("it leads", |line| line == "leading");
}

/// Where a `JobManager` listens.
pub(crate) fn address(manager: &Running) -> String {
    let listening = manager.said.iter().find_map(|line| line.strip_prefix("listening on "));
    listening.expect("it listens").to_owned()
}

/// Starts a `TaskManager` with two slots, and further `flags`.
pub(crate) fn task_manager(sandbox: &Sandbox, flags: &str) -> Running {
    sandbox.start(&format!("taskmanager {DATA} -D taskmanager.numberOfTaskSlots=2 {flags}"))
}

/// Starts `count` `TaskManager`s with two slots each, and further `flags`.
pub(crate) fn task_managers(sandbox: &Sandbox, count: usize, flags: &str) -> Vec<Running> {
    (0..count).map(|_| task_manager(sandbox, flags)).collect()
}

/// Waits until nothing of any run is left on the disk of the cluster but archives (P5); says how long
/// that took.
pub(crate) fn wait_until_clean(sandbox: &Sandbox) -> Duration {
    let began = Instant::now();
    sandbox.wait_until("no partition and no temporary file is left", |sandbox| {
        let places = ["cluster", "host0", "host1", "host2"];
        let shuffle: Vec<_> = places
            .iter()
            .flat_map(|place| sandbox.files(&format!("{place}/shuffle"), "/"))
            .collect();
        let stays = ["lock", ".lock", "service.json", "term"];
        shuffle.iter().all(|path| stays.iter().any(|name| path.ends_with(name)))
    });
    began.elapsed()
}
