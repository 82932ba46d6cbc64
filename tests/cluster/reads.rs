//! Task managers that share no directory, as on several hosts: they read each other's partitions
//! over TCP.

use std::{fs, net::TcpListener};

use crate::{
    roles::{DATA, address, leader},
    sandbox::{LedgerLine, Running, Sandbox, assert_finished_stays_finished, count},
};

/// So many tasks that each host has some of each stage.
const TASKS: &str = "-D execution.batch.adaptive.auto-parallelism.default-source-parallelism=12 \
     -D execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task=256kb";

/// A leader, and task managers that each keep their data in a directory of their own.
struct Hosts {
    sandbox: Sandbox,
    leader: Running,
    settings: &'static str,
}

impl Hosts {
    fn new(settings: &'static str) -> Self {
        let sandbox = Sandbox::new();
        let leader = leader(&sandbox, settings);
        Self { sandbox, leader, settings }
    }

    fn task_manager(&self, host: &str) -> Running {
        let (leader, settings) = (address(&self.leader), self.settings);
        let mut manager = self.sandbox.start(&format!(
            "taskmanager --data-dir {host} -D taskmanager.numberOfTaskSlots=1 {settings} \
             -D jobmanager.rpc.addresses={leader}"
        ));
        manager.until("it listens", |line| line.starts_with("listening on "));
        manager
    }

    fn submit(&self, job: &str) -> Running {
        self.sandbox.start(&format!("submit {job} {DATA} {}", self.settings))
    }

    fn wait_for_partitions_of(&self, host: &str) {
        let there =
            |sandbox: &Sandbox| !sandbox.files(&format!("{host}/shuffle"), ".partition").is_empty();
        self.sandbox.wait_until(&format!("{host} holds partitions"), there);
    }

    fn wait_until_clean(&self) {
        self.sandbox.wait_until("no partition is left", |sandbox| {
            ["a", "b"].iter().all(|host| {
                sandbox
                    .files(&format!("{host}/shuffle"), "/")
                    .iter()
                    .all(|path| path.ends_with("lock") || path.ends_with(".lock"))
            })
        });
    }
}

#[test]
fn words_are_counted_across_hosts() {
    let hosts = Hosts::new("");
    hosts.sandbox.fine("generate text --bytes 4mb --output text");
    let (_a, _b) = (hosts.task_manager("a"), hosts.task_manager("b"));
    let submit = hosts.submit(&format!("wordcount --input text --output counts {TASKS}"));
    hosts.wait_for_partitions_of("a");
    hosts.wait_for_partitions_of("b");
    assert_eq!(submit.wait(), Some(0));
    assert_eq!(hosts.sandbox.output("counts"), hosts.sandbox.counted("text"));
    hosts.wait_until_clean();
}

#[test]
fn what_a_lost_host_held_is_made_again() {
    let hosts = Hosts::new("-D taskmanager.reconnect-grace=300ms");
    hosts.sandbox.fine("generate records --size 4mb --files 3 --output records");
    let _a = hosts.task_manager("a");
    let b = hosts.task_manager("b");
    let submit = hosts.submit(&format!("sort --input records --output sorted {TASKS}"));
    hosts.wait_for_partitions_of("a");
    hosts.wait_for_partitions_of("b");
    b.kill();
    assert_eq!(submit.wait(), Some(0));
    let records = |directory: &str| {
        let published = hosts.sandbox.published(directory);
        let file = |name: &String| fs::read(hosts.sandbox.path(directory).join(name)).unwrap();
        let bytes: Vec<u8> = published.iter().flat_map(file).collect();
        bytes.chunks(100).map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let mut expected = records("records");
    expected.sort();
    assert!(records("sorted") == expected);
}

#[test]
fn rule_4_7_a_host_that_restarts_elsewhere_lost_nothing() {
    let hosts = Hosts::new("-D taskmanager.reconnect-grace=2s");
    let _a = hosts.task_manager("a");
    let b = hosts.task_manager("b");
    let submit =
        hosts.submit("stages --stage 4x200ms --stage 6x300ms --bytes 100kb --ledger ledger");
    hosts.sandbox.wait_for_starts("ledger", 1, 1);
    hosts.wait_for_partitions_of("b");
    b.kill();
    let _b = hosts.task_manager("b");
    assert_eq!(submit.wait(), Some(0));
    let ledger = hosts.sandbox.ledger("ledger");
    let of_first = |line: &&LedgerLine| line.subtask.is_some_and(|(stage, _)| stage == 0);
    let first: Vec<_> = ledger.into_iter().filter(|line| of_first(&line)).collect();
    assert_eq!((count(&first, "start"), count(&first, "end")), (4, 4), "{first:#?}");
}

#[test]
fn rule_4_5_workers_that_know_an_old_address_only_are_called_by_the_next_leader() {
    let Hosts { sandbox, leader: first, settings } = Hosts::new("");
    let old = address(&first);
    let hosts = Hosts { sandbox, leader: first, settings };
    let _b = hosts.task_manager("b");
    let submit = hosts.submit("stages --stage 6x300ms --stage 2x0s --ledger ledger");
    hosts.sandbox.wait_for_starts("ledger", 0, 3);
    let Hosts { sandbox, leader: first, .. } = hosts;
    // Nobody else may listen there, so that the next leader is elsewhere.
    first.kill();
    let _taken = TcpListener::bind(&old);
    let second = leader(&sandbox, settings);
    assert_ne!(address(&second), old);
    assert_eq!(submit.wait(), Some(0));
    assert_finished_stays_finished(&sandbox.ledger("ledger"));
}

#[test]
fn a_worker_that_others_could_not_reach_is_refused_at_its_start() {
    let sandbox = Sandbox::new();
    let refused = sandbox.regrow("taskmanager --data-dir a -D taskmanager.bind-host=0.0.0.0");
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("set taskmanager.host"), "{}", refused.err);
}
