use std::sync::{Arc, Mutex};

use regrow_runtime::JobState;
use regrow_store::Table;

use super::*;
use crate::{
    cluster::{JobSummary, JobsListed},
    dispatcher::{
        CancelRun, FollowRun, ListJobs,
        tests::{Client, Cluster, Heard, Watched},
    },
    simulated::{pass, simulate},
};

/// Keeps what it is told of jobs.
struct Listener(Arc<Mutex<Vec<Vec<JobSummary>>>>);

impl Actor for Listener {
    type Context = Context<Self>;
}

impl Handler<JobsListed> for Listener {
    type Result = ();

    fn handle(&mut self, JobsListed(jobs): JobsListed, _: &mut Self::Context) {
        self.0.lock().unwrap().push(jobs.unwrap());
    }
}

impl Cluster {
    /// Asks how jobs stand, and gives the answer when it comes.
    async fn listed(&self) -> Vec<JobSummary> {
        let answers = Arc::<Mutex<Vec<_>>>::default();
        let listener = Listener(Arc::clone(&answers)).start().recipient();
        self.dispatcher.do_send(ListJobs { wanted: None, listener });
        loop {
            pass(Duration::from_millis(1)).await;
            if let Some(answer) = answers.lock().unwrap().pop() {
                return answer;
            }
        }
    }

    fn follow(&self, job: &str) -> Watched {
        let (job, heard): (JobId, _) = (job.parse().unwrap(), Heard::default());
        let client = Client(Arc::clone(&heard)).start().recipient();
        self.dispatcher.do_send(FollowRun { job: job.clone(), run: None, client });
        Watched { job, run: RunId::from_bits(0), heard }
    }
}

fn refusal(watched: &Watched) -> Option<String> {
    let heard = watched.heard.lock().unwrap();
    heard.iter().find_map(|update| match update {
        ClientUpdate::Refused(error) => Some(error.to_string()),
        ClientUpdate::Run(_)
        | ClientUpdate::Abandoned { .. }
        | ClientUpdate::Ended { .. }
        | ClientUpdate::Closed => None,
    })
}

/// Two jobs that were accepted and have not ended.
async fn two_jobs() -> (Cluster, Watched) {
    let cluster = Cluster::new();
    let hurt = cluster.submit("hurt", "forever");
    cluster.submit("whole", "forever");
    pass(Duration::from_millis(30)).await;
    (cluster, hurt)
}

#[test]
fn fault_47_jobs_are_never_unknown_while_they_are_found() {
    simulate(async {
        let (cluster, _) = two_jobs().await;
        let cluster = cluster.led_by_another().await;
        let listed = cluster.listed().await;
        let mut names: Vec<&str> = listed.iter().map(|job| job.job.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["hurt", "whole"]);
        assert!(listed.iter().all(|job| job.state == JobState::Reconciling), "{listed:?}");
    });
}

#[test]
fn fault_19_a_cancel_that_comes_before_the_jobs_are_found_counts() {
    simulate(async {
        let (cluster, hurt) = two_jobs().await;
        let cluster = cluster.led_by_another().await;
        cluster.dispatcher.do_send(CancelRun::of(hurt.job));
        cluster.add_worker(8);
        assert_eq!(cluster.follow("hurt").end().await.state, JobState::Canceled);
    });
}

#[test]
fn fault_18_where_a_document_is_damaged_the_log_says_what_the_job_is() {
    simulate(async {
        let (cluster, hurt) = two_jobs().await;
        cluster.store.damage_document(Table::JobGraphs, "hurt");
        let cluster = cluster.led_by_another().await;
        cluster.add_worker(8);
        cluster.dispatcher.do_send(CancelRun::of(hurt.job));
        let outcome = cluster.follow("hurt").end().await;
        assert_eq!((outcome.state, outcome.run), (JobState::Canceled, hurt.run));
    });
}

#[test]
fn fault_18_a_job_of_which_nothing_is_left_fails_alone_with_its_cause() {
    simulate(async {
        let (cluster, hurt) = two_jobs().await;
        cluster.store.damage_document(Table::JobGraphs, "hurt");
        cluster.store.damage_batch(hurt.run, 0);
        let cluster = cluster.led_by_another().await;
        cluster.add_worker(8);
        let listed = cluster.listed().await;
        assert_eq!((listed[0].job.as_str(), listed[0].state), ("hurt", JobState::Failed));
        assert!(listed[0].error.as_ref().unwrap().contains("hurt of job-graphs"), "{listed:?}");
        assert_eq!(listed[1].job.as_str(), "whole");
        assert_eq!(cluster.follow("hurt").end().await.state, JobState::Failed);
        cluster.dispatcher.do_send(CancelRun::of("whole".parse().unwrap()));
        assert_eq!(cluster.follow("whole").end().await.state, JobState::Canceled);
        let cluster = cluster.led_by_another().await;
        let states: Vec<JobState> = cluster.listed().await.iter().map(|job| job.state).collect();
        assert_eq!(
            states,
            [JobState::Failed, JobState::Canceled],
            "they are listed after a restart"
        );
    });
}

#[test]
fn a_job_that_another_program_must_read_waits_and_says_so() {
    simulate(async {
        let (cluster, _) = two_jobs().await;
        let later = [0x81, 0xa6, b'f', b'o', b'r', b'm', b'a', b't', 9];
        cluster.store.clone().put(Table::JobGraphs, "hurt", &later).unwrap();
        let cluster = cluster.led_by_another().await;
        let listed = cluster.listed().await;
        assert_eq!((listed[0].job.as_str(), listed[0].state), ("hurt", JobState::Reconciling));
        assert!(listed[0].waiting_for.is_some());
        let followed = cluster.follow("hurt");
        pass(Duration::from_millis(1)).await;
        assert!(refusal(&followed).unwrap().contains("cannot be recovered"));
        assert_eq!(cluster.store.clone().keys(Table::JobGraphs).unwrap(), ["hurt", "whole"]);
    });
}

#[test]
fn a_store_that_refuses_for_a_while_costs_a_recovered_job_nothing_but_time() {
    simulate(async {
        let (cluster, hurt) = two_jobs().await;
        let cluster = cluster.led_by_another().await;
        cluster.store.fail_writes(3);
        cluster.add_worker(8);
        cluster.dispatcher.do_send(CancelRun::of(hurt.job));
        assert_eq!(cluster.follow("hurt").end().await.state, JobState::Canceled);
    });
}

#[test]
fn two_jobs_of_a_cluster_do_not_write_to_one_directory() {
    simulate(async {
        let cluster = Cluster::new();
        cluster.submit("first", "forever");
        let second = cluster.submit_to("first", "second", "");
        pass(Duration::from_millis(30)).await;
        let refused = refusal(&second).unwrap();
        assert!(refused.contains("job first") && refused.contains("cancel it"), "{refused}");
        assert!(second.outcome().is_none());
    });
}

#[test]
fn a_client_that_asks_again_for_a_run_hears_once_how_it_ends() {
    simulate(async {
        let (cluster, _) = two_jobs().await;
        let (job, heard): (JobId, _) = ("whole".parse().unwrap(), Heard::default());
        let client = Client(Arc::clone(&heard)).start().recipient();
        for _ in 0..3 {
            let (job, client) = (job.clone(), client.clone());
            cluster.dispatcher.do_send(FollowRun { job, run: None, client });
        }
        cluster.dispatcher.do_send(CancelRun::of(job.clone()));
        Watched { job, run: RunId::from_bits(0), heard: Arc::clone(&heard) }.end().await;
        let heard = heard.lock().unwrap();
        let ends = heard.iter().filter(|update| matches!(update, ClientUpdate::Ended { .. }));
        assert_eq!(ends.count(), 1);
    });
}
