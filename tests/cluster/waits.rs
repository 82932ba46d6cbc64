//! What those see who look for a leader while there is none.

use crate::{
    roles::{DATA, address, leader, standby},
    sandbox::{Running, Sandbox},
};

/// What a search says that takes long.
const LONG: &str = "still looking";

#[test]
fn a_command_that_finds_no_leader_says_so_goes_on_and_answers_when_one_comes() {
    let sandbox = Sandbox::new();
    let mut commands = ["list --json", "status nobody", "wait nobody", "cancel nobody"]
        .map(|command| sandbox.start(&format!("{command} {DATA}")));
    let mut submit = sandbox
        .start(&format!("submit stages --stage 1x0s --job-id early --detached --json {DATA}"));
    let quiet = sandbox.start(&format!("list --json --quiet {DATA}"));
    let long =
        |line: &str| line.contains(LONG) && line.contains("cluster (") && line.contains(" s more");
    for command in commands.iter_mut().chain([&mut submit]) {
        command.until("it says that it goes on looking", long);
    }
    let _leader = leader(&sandbox, "");
    let submitted = submit.answer();
    assert_eq!((submitted.code, &submitted.json()["job_id"]), (Some(0), &"early".into()));
    let answers = commands.map(Running::answer);
    assert_eq!(answers.each_ref().map(|answer| answer.code), [Some(0), Some(2), Some(2), Some(2)]);
    for answer in &answers {
        assert_eq!(answer.err.matches(LONG).count(), 1, "{}", answer.err);
    }
    answers[0].json_lines();
    let quiet = quiet.answer();
    assert_eq!((quiet.code, &*quiet.err), (Some(0), ""));
}

#[test]
fn who_is_sent_on_by_a_standby_says_so_when_nobody_answers() {
    let sandbox = Sandbox::new();
    let first = leader(&sandbox, "");
    let second = standby(&sandbox, "");
    first.signal("STOP");
    let (leads, stands) = (address(&first), address(&second));
    let answer = sandbox.regrow(&format!(
        "list {DATA} -D client.leader-timeout=300ms -D jobmanager.rpc.addresses={stands}"
    ));
    assert_eq!(answer.code, Some(4), "{}", answer.err);
    assert!(answer.err.contains(&format!("{stands} (a standby, which does not lead)")));
    assert!(answer.err.contains(&format!("{leads}, named by the standby at {stands} (no answer")));
}

#[test]
fn a_task_manager_takes_its_slots_from_a_flag_before_its_setting() {
    let sandbox = Sandbox::new();
    let mut worker =
        sandbox.start(&format!("taskmanager --slots 3 {DATA} -D taskmanager.numberOfTaskSlots=2"));
    worker.until("it runs tasks", |line| line == "running tasks on 3 slots");
    let wrong = sandbox.regrow(&format!("taskmanager --slots 0 {DATA}"));
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
}
