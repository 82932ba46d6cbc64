//! How a run ends, each step durable before the next (rule 3.9): result and archive, hidden
//! directories, clients told, partitions released, log removed, graph removed.

use actix::{AsyncContext, Context, Handler, Message};
use regrow_protocol::{
    Accumulators, Envelope, Epoch, RunId, RunStanding, ToShuffleService, ToTaskExecutor,
};
use regrow_runtime::{JobOutcome, JobState, JobSubmission, with_causes};
use tracing::{error, info, warn};

use super::{ClientUpdate, Dispatcher, run::Life, store_work};
use crate::{
    gateway::{Post, WorkerConnected},
    job_master::StopMaster,
    resource_manager::RunEnded,
    store_runner::ask,
};

/// The result of a run is stored, or not.
struct ResultStored {
    run: RunId,
    result: Result<(), String>,
}

impl Message for ResultStored {
    type Result = ();
}

/// The hidden directories of a run are gone.
struct OutputCleaned {
    run: RunId,
}

impl Message for OutputCleaned {
    type Result = ();
}

/// The log and graph of a run are gone, or not.
struct Forgotten {
    run: RunId,
    result: Result<(), String>,
}

impl Message for Forgotten {
    type Result = ();
}

impl Dispatcher {
    /// Stores the result of a terminal run, first of all.
    pub(super) fn conclude(&mut self, id: RunId, outcome: Box<JobOutcome>, ctx: &Context<Self>) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        info!(job = %outcome.job, run = %id, state = %outcome.state, "the job ended");
        if let Life::Led(master) = &run.life {
            master.do_send(StopMaster);
        }
        run.life = Life::Concluding(outcome);
        self.store_result(id, ctx);
    }

    fn store_result(&self, id: RunId, ctx: &Context<Self>) {
        let Some(run) = self.runs.get(&id) else { return };
        let Life::Concluding(outcome) = &run.life else { return };
        let (outcome, submission) = (outcome.clone(), run.submission.clone());
        let (places, this) = (self.places(&submission.job), ctx.address());
        ask(
            &*self.config.store,
            move |store| store_work::conclude(store, &places, &submission, &outcome),
            move |result| {
                let result = result.unwrap_or_else(Err);
                this.do_send(ResultStored { run: id, result });
            },
        );
    }

    pub(super) fn clean_output(&self, id: RunId, ctx: &Context<Self>) {
        let Some(run) = self.runs.get(&id) else { return };
        let Life::Concluding(outcome) = &run.life else { return };
        let (output, sinks, state, this) =
            (run.output.clone(), run.submission.graph.sinks.clone(), outcome.state, ctx.address());
        let work = move || output.clean_up(id, &sinks, state);
        self.config.effects.run("regrow-output", work, move |result| {
            match result {
                Ok(Ok(())) => {}
                Ok(Err(error)) => warn!(run = %id, error = %with_causes(&error), "files are left"),
                Err(text) => error!(run = %id, panic = %text, "files are left"),
            }
            this.do_send(OutputCleaned { run: id });
        });
    }

    /// Tells the clients, has the workers release all, and removes log and graph.
    fn release(&mut self, id: RunId, ctx: &Context<Self>) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let Life::Concluding(outcome) = std::mem::replace(&mut run.life, Life::Forgetting) else {
            return;
        };
        for client in &run.clients {
            let outcome = outcome.clone();
            client.do_send(ClientUpdate::Ended { outcome, joined: false });
        }
        run.outcome = Some(outcome);
        let epoch = run.epoch;
        self.ended.add(id);
        for worker in self.workers.values() {
            tell_ended(worker, id, epoch);
        }
        self.config.resource_manager.do_send(RunEnded { run: id });
        self.forget(id, ctx);
    }

    fn forget(&self, id: RunId, ctx: &Context<Self>) {
        let Some(run) = self.runs.get(&id) else { return };
        let submission = run.submission.clone();
        let (places, this) = (self.places(&submission.job), ctx.address());
        ask(
            &*self.config.store,
            move |store| store_work::forget(store, &places, &submission),
            move |result| {
                let result = result.and_then(|forgot| forgot.map_err(|error| with_causes(&error)));
                this.do_send(Forgotten { run: id, result });
            },
        );
    }
}

/// Has a worker forget an ended run and release all of it.
pub(super) fn tell_ended(worker: &WorkerConnected, run: RunId, epoch: Epoch) {
    let message = ToTaskExecutor::RunEnded { standing: RunStanding::Ended };
    worker.task_executor.do_send(Post(Envelope { run, epoch, message }));
    let message = ToShuffleService::ReleaseRun;
    worker.shuffle_service.do_send(Post(Envelope { run, epoch, message }));
}

/// The outcome of a run whose log cannot be replayed.
pub(super) fn failed(submission: &JobSubmission, epoch: Epoch, error: String) -> JobOutcome {
    JobOutcome {
        job: submission.job.clone(),
        run: submission.run,
        state: JobState::Failed,
        recoveries: epoch.life,
        error: Some(error),
        accumulators: Accumulators::default(),
    }
}

impl Handler<ResultStored> for Dispatcher {
    type Result = ();

    fn handle(&mut self, ResultStored { run, result }: ResultStored, ctx: &mut Self::Context) {
        match result {
            Ok(()) => {
                if let Some(run) = self.runs.get_mut(&run) {
                    run.concluded = true;
                }
                self.clean_output(run, ctx);
            }
            Err(reason) => {
                self.retry(run, &reason, ctx, |dispatcher, id, ctx| {
                    dispatcher.store_result(id, ctx);
                });
            }
        }
    }
}

impl Handler<OutputCleaned> for Dispatcher {
    type Result = ();

    fn handle(&mut self, OutputCleaned { run }: OutputCleaned, ctx: &mut Self::Context) {
        self.release(run, ctx);
    }
}

impl Handler<Forgotten> for Dispatcher {
    type Result = ();

    fn handle(&mut self, Forgotten { run: id, result }: Forgotten, ctx: &mut Self::Context) {
        match result {
            Ok(()) => {
                let Some(run) = self.runs.remove(&id) else { return };
                for client in run.clients {
                    client.do_send(ClientUpdate::Closed);
                }
            }
            Err(reason) => {
                self.retry(id, &reason, ctx, |dispatcher, id, ctx| dispatcher.forget(id, ctx));
            }
        }
    }
}
