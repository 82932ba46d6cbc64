//! Where the blocking work of an actor runs: user code and files, never on an actor's thread.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use tracing::warn;

/// Runs blocking work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffectRunner {
    /// Each on a thread of its own.
    Threads,
    /// At once, on the caller's thread: for simulation.
    #[cfg(test)]
    Inline,
}

impl EffectRunner {
    /// Runs `work` under `name` and gives its result to `done`, exactly once: the text of the panic
    /// if it panicked, or why no thread could be started.
    pub(crate) fn run<T: 'static>(
        self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
        done: impl FnOnce(Result<T, String>) + Send + 'static,
    ) {
        let mut answer = Answer::new(done, "the system refused a thread for it");
        let run = move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            answer.give(result.map_err(|payload| panic_text(&*payload)));
        };
        match self {
            #[cfg(test)]
            Self::Inline => run(),
            // A thread that cannot be started drops the closure, and with it the answer.
            Self::Threads => {
                if let Err(error) = thread::Builder::new().name(name.to_owned()).spawn(run) {
                    warn!(%name, %error, "no thread for blocking work");
                }
            }
        }
    }
}

/// Who waits for a result.
type Waiting<T> = Box<dyn FnOnce(Result<T, String>) + Send>;

/// Answers for work that was never begun, too, so that nobody waits for ever.
pub(crate) struct Answer<T> {
    done: Option<Waiting<T>>,
    never_begun: &'static str,
}

impl<T> Answer<T> {
    /// Answers `done`; with `never_begun` if the work is dropped.
    pub(crate) fn new(
        done: impl FnOnce(Result<T, String>) + Send + 'static,
        never_begun: &'static str,
    ) -> Self {
        Self { done: Some(Box::new(done)), never_begun }
    }

    pub(crate) fn give(&mut self, result: Result<T, String>) {
        if let Some(done) = self.done.take() {
            done(result);
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        self.give(Err(self.never_begun.to_owned()));
    }
}

/// The text of a panic.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "a panic without a text".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_result_comes_from_another_thread() {
        let (sender, receiver) = mpsc::channel();
        let work = || thread::current().name().map(str::to_owned);
        EffectRunner::Threads.run("listing", work, move |result| sender.send(result).unwrap());
        assert_eq!(receiver.recv().unwrap(), Ok(Some("listing".to_owned())));
    }

    #[test]
    fn a_panic_is_a_result() {
        let (sender, receiver) = mpsc::channel();
        let work = || -> u32 { panic!("no such directory") };
        EffectRunner::Inline.run("listing", work, move |result| sender.send(result).unwrap());
        assert_eq!(receiver.recv().unwrap(), Err("no such directory".to_owned()));
    }

    #[test]
    fn work_that_never_began_is_answered() {
        let (sender, receiver) = mpsc::channel();
        drop(Answer::<u32>::new(move |result| sender.send(result).unwrap(), "no thread"));
        assert_eq!(receiver.recv().unwrap(), Err("no thread".to_owned()));
    }
}
