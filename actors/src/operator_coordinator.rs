//! Does what the coordinator of a vertex wants done outside its state: the discovery of splits.
//!
//! The state itself is a part of the `Job`; assigning splits is pure.

use std::sync::Arc;

use actix::{Actor, AsyncContext, Context, Handler, Message, Recipient};
use regrow_protocol::{JobVertexId, Split};
use tracing::info;

use crate::{effects::EffectRunner, task::TaskFactory, user_code::guarded};

/// What a coordinator needs to know of its job.
#[derive(Clone)]
pub(crate) struct DiscoveryContext {
    /// The program's jobs.
    pub factory: Arc<dyn TaskFactory>,
    /// Name under which the program registered the job.
    pub job_name: String,
    /// Its arguments.
    pub arguments: Vec<u8>,
    /// Where user code runs.
    pub effects: EffectRunner,
}

/// List the splits.
pub(crate) struct DiscoverSplits;

impl Message for DiscoverSplits {
    type Result = ();
}

/// The splits of a vertex were listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SplitsDiscovered {
    /// Whose.
    pub vertex: JobVertexId,
    /// The splits, or why there are none.
    pub result: Result<Vec<Split>, String>,
}

impl Message for SplitsDiscovered {
    type Result = ();
}

/// The coordinator of one vertex, as far as it has effects.
pub(crate) struct OperatorCoordinator {
    vertex: JobVertexId,
    context: DiscoveryContext,
    master: Recipient<SplitsDiscovered>,
    discovering: bool,
}

impl OperatorCoordinator {
    /// Works for `vertex`, and tells `master`.
    pub(crate) fn new(
        vertex: JobVertexId,
        context: DiscoveryContext,
        master: Recipient<SplitsDiscovered>,
    ) -> Self {
        Self { vertex, context, master, discovering: false }
    }
}

impl Actor for OperatorCoordinator {
    type Context = Context<Self>;
}

impl Handler<DiscoverSplits> for OperatorCoordinator {
    type Result = ();

    fn handle(&mut self, _: DiscoverSplits, ctx: &mut Self::Context) {
        if std::mem::replace(&mut self.discovering, true) {
            return;
        }
        let vertex = self.vertex;
        let DiscoveryContext { factory, job_name, arguments, effects } = self.context.clone();
        let this = ctx.address();
        let work = move || discover(&*factory, &job_name, &arguments, vertex);
        effects.run(&format!("regrow-splits-{vertex}"), work, move |result| {
            let result = result.unwrap_or_else(Err);
            this.do_send(SplitsDiscovered { vertex, result });
        });
    }
}

/// Listing is user code: a panic in it is a failure like any other.
fn discover(
    factory: &dyn TaskFactory,
    job_name: &str,
    arguments: &[u8],
    vertex: JobVertexId,
) -> Result<Vec<Split>, String> {
    let listed = guarded(|| Ok(factory.discover_splits(job_name, arguments, vertex)));
    listed.map_err(|panicked| format!("the discovery of splits {panicked}")).flatten()
}

impl Handler<SplitsDiscovered> for OperatorCoordinator {
    type Result = ();

    fn handle(&mut self, discovered: SplitsDiscovered, _: &mut Self::Context) {
        self.discovering = false;
        let count = discovered.result.as_ref().map(Vec::len).unwrap_or_default();
        info!(vertex = %self.vertex, splits = count, "discovery of splits ended");
        self.master.do_send(discovered);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use regrow_protocol::{SplitId, TaskDeployment, TaskFailure};
    use regrow_runtime::JobGraph;

    use super::*;
    use crate::{
        simulated::{pass, simulate},
        task::Task,
    };

    /// Lists as its arguments say.
    struct Listing;

    impl TaskFactory for Listing {
        fn build(&self, _: &str, _: &[u8]) -> Result<JobGraph, String> {
            Ok(JobGraph::default())
        }

        fn create(&self, _: &TaskDeployment) -> Result<Box<dyn Task>, TaskFailure> {
            Err(TaskFailure::task("this program lists only"))
        }

        fn discover_splits(
            &self,
            _: &str,
            arguments: &[u8],
            _: JobVertexId,
        ) -> Result<Vec<Split>, String> {
            match arguments {
                b"panic" => panic!("no such thing"),
                b"fail" => Err("no directory /data".to_owned()),
                _ => Ok(vec![Split { id: SplitId(0), size_bytes: 7, payload: Vec::new() }]),
            }
        }
    }

    struct Master(Arc<Mutex<Vec<SplitsDiscovered>>>);

    impl Actor for Master {
        type Context = Context<Self>;
    }

    impl Handler<SplitsDiscovered> for Master {
        type Result = ();

        fn handle(&mut self, discovered: SplitsDiscovered, _: &mut Self::Context) {
            self.0.lock().unwrap().push(discovered);
        }
    }

    fn discovered(arguments: &[u8]) -> Vec<SplitsDiscovered> {
        let heard = Arc::default();
        simulate(async {
            let context = DiscoveryContext {
                factory: Arc::new(Listing),
                job_name: "list".to_owned(),
                arguments: arguments.to_vec(),
                effects: EffectRunner::Inline,
            };
            let master = Master(Arc::clone(&heard)).start().recipient();
            let coordinator = OperatorCoordinator::new(JobVertexId(3), context, master).start();
            coordinator.do_send(DiscoverSplits);
            coordinator.do_send(DiscoverSplits);
            pass(std::time::Duration::from_millis(1)).await;
        });
        heard.lock().unwrap().clone()
    }

    #[test]
    fn a_listing_is_reported_once_however_often_it_is_asked_for() {
        let heard = discovered(b"");
        assert!(
            matches!(&heard[..], [SplitsDiscovered { result: Ok(splits), .. }] if splits.len() == 1)
        );
    }

    #[test]
    fn a_failure_or_panic_of_user_code_is_a_failed_discovery() {
        let text = |arguments| discovered(arguments).remove(0).result.unwrap_err();
        assert_eq!(text(b"fail"), "no directory /data");
        let panicked = text(b"panic");
        assert!(panicked.contains("no such thing") && panicked.contains(".rs:"), "{panicked}");
    }
}
