//! Stands, in a `JobManager`'s process, for a client in another one.

use std::sync::Arc;

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler, Message};
use regrow_protocol::{JobId, encode};
use regrow_runtime::{JobSubmission, Options, with_causes};
use tracing::error;

use super::{
    client_messages::{FromClient, JobSummary, Submission, ToClient},
    event_page::EventQuestion,
};
use crate::{
    dispatcher::{
        CancelRun, ClientUpdate, Dispatcher, FollowRun, ListJobs, LookAt, Looked, Looking, Page,
        SubmitError, SubmitJob,
    },
    effects::EffectRunner,
    net::Link,
    output::OutputCommitter,
    random_bits::random_bits,
    task::TaskFactory,
};

/// Passes on what a client asks and what it is to hear.
pub(crate) struct ClientSession {
    link: Link,
    dispatcher: Addr<Dispatcher>,
    factory: Arc<dyn TaskFactory>,
    effects: EffectRunner,
}

/// The client says something.
pub(crate) struct Said(pub(crate) FromClient);

impl Message for Said {
    type Result = ();
}

/// The client is gone.
pub(crate) struct ClientGone;

impl Message for ClientGone {
    type Result = ();
}

/// All jobs that are known, or why they are not told.
#[derive(Debug)]
pub(crate) struct JobsListed(pub(crate) Result<Vec<JobSummary>, SubmitError>);

impl Message for JobsListed {
    type Result = ();
}

/// The graph of a submitted job was built, or not.
struct Built {
    submission: Box<Submission>,
    result: Result<(JobSubmission, Option<String>), String>,
}

impl Message for Built {
    type Result = ();
}

impl ClientSession {
    /// Stands for the client behind `link`.
    pub(crate) fn new(
        link: Link,
        dispatcher: Addr<Dispatcher>,
        factory: Arc<dyn TaskFactory>,
        effects: EffectRunner,
    ) -> Self {
        Self { link, dispatcher, factory, effects }
    }

    fn say(&self, message: &ToClient) {
        match encode(message) {
            Ok(frame) => self.link.send(frame),
            Err(error) => error!(error = %with_causes(&error), "a client cannot be answered"),
        }
    }

    fn list(&self, wanted: Option<JobId>, ctx: &Context<Self>) {
        let listener = ctx.address().recipient();
        self.dispatcher.do_send(ListJobs { wanted, listener });
    }

    fn look(&self, job: JobId, what: Looking, ctx: &Context<Self>) {
        let listener = ctx.address().recipient();
        self.dispatcher.do_send(LookAt { job, what, listener });
    }

    fn refuse(&self, reason: String) {
        self.say(&ToClient::Refused { reason });
    }

    /// Builds the graph, on a thread of its own: that is user code.
    fn build(&self, submission: Box<Submission>, ctx: &Context<Self>) {
        let (factory, this) = (Arc::clone(&self.factory), ctx.address());
        let wanted = submission.clone();
        self.effects.run(
            "regrow-build",
            move || built(&*factory, &wanted),
            move |result| {
                let result = result.unwrap_or_else(|panic| Err(format!("the builder: {panic}")));
                this.do_send(Built { submission, result });
            },
        );
    }
}

/// The job that a client wants, and why it may not begin a run, if it may not.
fn built(
    factory: &dyn TaskFactory,
    wanted: &Submission,
) -> Result<(JobSubmission, Option<String>), String> {
    let graph = factory.build(&wanted.job_name, &wanted.arguments)?;
    if graph.hash() != wanted.graph_hash {
        return Err(format!(
            "job {} was built here with graph {:016x}, and by the client with graph {:016x}: the \
             job's builder is not deterministic, or the programs differ; run the same program \
             everywhere",
            wanted.job_name,
            graph.hash(),
            wanted.graph_hash
        ));
    }
    let bits = random_bits().map_err(|error| with_causes(&error))?;
    let obstacle = OutputCommitter::check_free(&graph.sinks).err();
    let submission = JobSubmission {
        job: wanted.job.clone(),
        run: regrow_protocol::RunId::from_bits(bits),
        submission: wanted.id,
        job_name: wanted.job_name.clone(),
        arguments: wanted.arguments.clone(),
        graph,
        ledger: wanted.ledger.clone(),
        settings: wanted.settings.clone(),
    };
    Ok((submission, obstacle.map(|error| with_causes(&error))))
}

impl Actor for ClientSession {
    type Context = Context<Self>;
}

impl Handler<Said> for ClientSession {
    type Result = ();

    fn handle(&mut self, Said(message): Said, ctx: &mut Self::Context) {
        let client = ctx.address().recipient();
        match message {
            FromClient::Submit(submission) => self.build(submission, ctx),
            FromClient::Follow { job, run } => {
                self.dispatcher.do_send(FollowRun { job, run, client });
            }
            FromClient::Cancel { job } => {
                self.dispatcher.do_send(CancelRun { job, client: Some(client) });
            }
            FromClient::List => self.list(None, ctx),
            FromClient::Status { job } => self.list(Some(job), ctx),
            FromClient::Events { job, from, place } => {
                self.look(job, Looking::Events(EventQuestion::new(from, place)), ctx);
            }
            FromClient::Recoveries { job, from } => self.look(job, Looking::Reports(from), ctx),
        }
    }
}

impl Handler<Built> for ClientSession {
    type Result = ();

    fn handle(&mut self, Built { submission, result }: Built, ctx: &mut Self::Context) {
        let settings = submission.settings.iter().map(|(key, value)| (&**key, &**value));
        let options = Options::from_settings(settings).map_err(|error| with_causes(&error));
        match result.and_then(|built| Ok((built, options?))) {
            Ok(((submission, obstacle), options)) => {
                let client = ctx.address().recipient();
                let submit = SubmitJob::new(submission, options, client);
                self.dispatcher.do_send(SubmitJob { obstacle, ..submit });
            }
            Err(reason) => self.refuse(reason),
        }
    }
}

impl Handler<ClientUpdate> for ClientSession {
    type Result = ();

    fn handle(&mut self, update: ClientUpdate, _: &mut Self::Context) {
        self.say(&match update {
            ClientUpdate::Run(update) => ToClient::Update(Box::new(update)),
            ClientUpdate::Refused(error) => ToClient::Refused { reason: with_causes(&error) },
            ClientUpdate::Abandoned { reason } => ToClient::Abandoned { reason },
            ClientUpdate::Ended { outcome, joined } => ToClient::Ended { outcome, joined },
            ClientUpdate::Closed => ToClient::Closed,
        });
    }
}

impl Handler<JobsListed> for ClientSession {
    type Result = ();

    fn handle(&mut self, JobsListed(jobs): JobsListed, _: &mut Self::Context) {
        self.say(&match jobs {
            Ok(jobs) => ToClient::Jobs(jobs),
            Err(error) => ToClient::Refused { reason: with_causes(&error) },
        });
    }
}

impl Handler<Looked> for ClientSession {
    type Result = ();

    fn handle(&mut self, Looked(result): Looked, _: &mut Self::Context) {
        self.say(&match result {
            Ok(Page::Events(page)) => ToClient::Events(page),
            Ok(Page::Reports(page)) => ToClient::Recoveries(page),
            Err(error) => ToClient::Refused { reason: with_causes(&error) },
        });
    }
}

impl Handler<ClientGone> for ClientSession {
    type Result = ();

    fn handle(&mut self, _: ClientGone, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
