//! Questions that wait until they can be answered.

use std::collections::BTreeMap;

use regrow_protocol::{RunId, ToJobMaster, WorkerId};
use tracing::warn;

use super::{CancelRun, ClientUpdate, FollowRun, ListJobs, LookAt, Looked, SubmitError, SubmitJob};
use crate::{cluster::JobsListed, gateway::Post};

/// Questions of clients that wait at most; who asks one more is refused. A client waits for one, so
/// that these are as many clients.
const QUESTIONS_MAX: usize = 10_000;

/// Bytes of arguments of jobs that wait at most.
const ARGUMENT_BYTES_MAX: usize = 256 << 20;

/// Runs of workers that wait to hear how they stand, at most. A worker that hears nothing gives up
/// by itself what it holds, when `taskmanager.registration.timeout` has passed.
const INVENTORIES_MAX: usize = 100_000;

/// What cannot be answered yet.
pub(super) enum Question {
    Submit(Box<SubmitJob>),
    Follow(FollowRun),
    Cancel(CancelRun),
    List(ListJobs),
    Look(LookAt),
    /// The worker holds something of the run.
    Inventory(WorkerId, Box<Post<ToJobMaster>>),
}

/// Questions in the order in which they came. Nobody is left without an answer: what is one too many
/// is refused at once, and what a worker says again stands for what it said before.
#[derive(Default)]
pub(super) struct WaitingQuestions {
    asked: Vec<Question>,
    argument_bytes: usize,
    inventories: BTreeMap<(WorkerId, RunId), Box<Post<ToJobMaster>>>,
}

impl WaitingQuestions {
    /// Keeps a question, or refuses it.
    pub(super) fn add(&mut self, question: Question) {
        let bytes = match &question {
            Question::Inventory(..) => return self.add_inventory(question),
            Question::Submit(submit) => submit.submission.arguments.len(),
            Question::Cancel(_) | Question::Follow(_) | Question::List(_) | Question::Look(_) => 0,
        };
        let argument_bytes = self.argument_bytes.saturating_add(bytes);
        if self.asked.len() >= QUESTIONS_MAX || argument_bytes > ARGUMENT_BYTES_MAX {
            return self.refuse(question);
        }
        self.argument_bytes = argument_bytes;
        self.asked.push(question);
    }

    /// All of them: those of clients in the order in which they came, then those of workers.
    pub(super) fn into_questions(self) -> impl Iterator<Item = Question> {
        let held = self.inventories.into_iter();
        let held = held.map(|((worker, _), post)| Question::Inventory(worker, post));
        self.asked.into_iter().chain(held)
    }

    fn add_inventory(&mut self, question: Question) {
        let Question::Inventory(worker, post) = question else { return };
        let key = (worker, post.0.run);
        if self.inventories.len() < INVENTORIES_MAX || self.inventories.contains_key(&key) {
            self.inventories.insert(key, post);
        } else {
            warn!(%worker, run = %key.1, "too many workers ask how runs stand; this one must wait");
        }
    }

    fn refuse(&self, question: Question) {
        let error = SubmitError::Busy { waiting: self.asked.len() };
        warn!(waiting = self.asked.len(), "a client is refused: too many wait");
        match question {
            Question::Submit(submit) => submit.client.do_send(ClientUpdate::Refused(error)),
            Question::Follow(follow) => follow.client.do_send(ClientUpdate::Refused(error)),
            Question::Cancel(CancelRun { client: Some(client), .. }) => {
                client.do_send(ClientUpdate::Refused(error));
            }
            // Only what runs in this process asks so, and nothing waits there.
            Question::Cancel(CancelRun { job, client: None }) => {
                warn!(%job, "a cancel is refused, and nobody hears of it");
            }
            Question::List(list) => list.listener.do_send(JobsListed(Err(error))),
            Question::Look(look) => look.listener.do_send(Looked(Err(error))),
            Question::Inventory(..) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use actix::{Actor as _, Recipient};
    use regrow_protocol::{Envelope, Epoch, JobId, SubmissionId};
    use regrow_runtime::{JobGraph, JobSubmission, Options};

    use super::*;
    use crate::{
        dispatcher::tests::{Client, Heard},
        simulated::{pass, simulate},
    };

    fn client() -> (Recipient<ClientUpdate>, Heard) {
        let heard = Heard::default();
        (Client(Arc::clone(&heard)).start().recipient(), heard)
    }

    fn refused(heard: &Heard) -> usize {
        let is_refusal = |update: &&ClientUpdate| {
            matches!(update, ClientUpdate::Refused(SubmitError::Busy { .. }))
        };
        heard.lock().unwrap().iter().filter(is_refusal).count()
    }

    fn submit(bytes: usize, client: Recipient<ClientUpdate>) -> Question {
        let submission = JobSubmission {
            job: JobId::from_bits(1),
            run: RunId::from_bits(1),
            submission: SubmissionId::from_bits(1),
            job_name: "sort".to_owned(),
            arguments: vec![0; bytes],
            graph: JobGraph::default(),
            ledger: None,
            settings: Vec::new(),
        };
        Question::Submit(Box::new(SubmitJob::new(submission, Options::default(), client)))
    }

    #[test]
    fn one_question_too_many_is_refused_and_none_is_lost() {
        simulate(async {
            let mut waiting = WaitingQuestions::default();
            let ((early, heard), (late, told)) = (client(), client());
            let job = JobId::from_bits(1);
            for _ in 0..QUESTIONS_MAX {
                let follow = FollowRun { job: job.clone(), run: None, client: early.clone() };
                waiting.add(Question::Follow(follow));
            }
            waiting.add(Question::Cancel(CancelRun { job, client: Some(late.clone()) }));
            waiting.add(submit(1, late));
            pass(Duration::from_millis(1)).await;
            assert_eq!((refused(&heard), refused(&told)), (0, 2));
            assert_eq!(waiting.into_questions().count(), QUESTIONS_MAX);
        });
    }

    #[test]
    fn arguments_that_wait_are_bounded() {
        simulate(async {
            let mut waiting = WaitingQuestions::default();
            let (client, heard) = client();
            waiting.add(submit(ARGUMENT_BYTES_MAX - 1, client.clone()));
            waiting.add(submit(2, client.clone()));
            waiting.add(submit(1, client));
            pass(Duration::from_millis(1)).await;
            assert_eq!((refused(&heard), waiting.into_questions().count()), (1, 2));
        });
    }

    #[test]
    fn what_a_worker_says_again_waits_once() {
        let mut waiting = WaitingQuestions::default();
        let (worker, run) = (WorkerId::from_bits(1), RunId::from_bits(1));
        for life in 0..3 {
            let (epoch, message) = (Epoch::new(1, life), ToJobMaster::RunHeld { worker });
            let post = Post(Envelope { run, epoch, message });
            waiting.add(Question::Inventory(worker, Box::new(post)));
        }
        let mut questions = waiting.into_questions();
        let Some(Question::Inventory(_, post)) = questions.next() else { panic!("it waits") };
        assert_eq!((post.0.epoch.life, questions.next().is_none()), (2, true));
    }
}
