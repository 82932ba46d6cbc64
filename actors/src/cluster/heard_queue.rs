//! What a client's connection has heard, and its caller has not yet.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crossbeam_channel::{Receiver, Sender, unbounded};
use tokio::sync::Notify;

use super::client_messages::ToClient;
use crate::{launch::RunUpdate, net::Link};

/// Messages that wait at most. Statuses wait as one, so that only a caller that hears nothing for
/// very long has so many.
const MESSAGES_MAX: usize = 10_000;

/// What the connection says.
pub(super) enum Heard {
    Message(Box<ToClient>),
    Opened { link: Link, address: String },
    Closed(String),
    NoLeader(String),
}

/// The end at which the connection puts what it hears. A status takes the place of one that nobody
/// has heard. The message that is one too many is refused, which ends the connection; the next one
/// begins when all that waits was heard, and the client asks anew there: what it missed is told then,
/// an end or an answer included.
pub(super) struct HeardSender {
    shared: Arc<Shared>,
    /// As many as wait; closed when nobody hears any more.
    signals: Sender<()>,
}

/// The end at which the caller hears.
pub(super) struct HeardReceiver {
    shared: Arc<Shared>,
    signals: Receiver<()>,
}

struct Shared {
    waiting: Mutex<VecDeque<Heard>>,
    emptied: Notify,
}

/// Nobody hears any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NobodyHears;

/// Makes the two ends.
pub(super) fn heard_queue() -> (HeardSender, HeardReceiver) {
    let shared = Arc::new(Shared { waiting: Mutex::default(), emptied: Notify::new() });
    // One signal for each that waits: bounded with them.
    let (sender, receiver) = unbounded();
    let says = HeardSender { shared: Arc::clone(&shared), signals: sender };
    (says, HeardReceiver { shared, signals: receiver })
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Heard>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeardSender {
    /// Says what became of the connection.
    pub(super) fn say(&self, heard: Heard) -> Result<(), NobodyHears> {
        self.shared.waiting().push_back(heard);
        self.signals.send(()).map_err(|_| NobodyHears)
    }

    /// Passes a message on. The error, for people, ends the connection.
    pub(super) fn pass_on(&self, message: ToClient) -> Result<(), String> {
        let mut waiting = self.shared.waiting();
        if is_status(&message)
            && let Some(Heard::Message(last)) = waiting.back_mut()
            && is_status(last)
        {
            **last = message;
            return Ok(());
        }
        if waiting.len() >= MESSAGES_MAX {
            return Err(format!("this client does not keep up: {} messages wait", waiting.len()));
        }
        waiting.push_back(Heard::Message(Box::new(message)));
        drop(waiting);
        self.signals.send(()).map_err(|_| "nobody listens".to_owned())
    }

    /// Waits until all was heard.
    pub(super) async fn all_heard(&self) {
        loop {
            let emptied = self.shared.emptied.notified();
            if self.shared.waiting().is_empty() {
                return;
            }
            emptied.await;
        }
    }
}

impl HeardReceiver {
    /// Says one word for each thing that waits; closed when nothing comes any more.
    pub(super) fn signals(&self) -> &Receiver<()> {
        &self.signals
    }

    /// What waits behind a signal that was received.
    pub(super) fn take(&self) -> Option<Heard> {
        let mut waiting = self.shared.waiting();
        let next = waiting.pop_front();
        if waiting.is_empty() {
            self.shared.emptied.notify_one();
        }
        next
    }
}

fn is_status(message: &ToClient) -> bool {
    matches!(message, ToClient::Update(update) if matches!(**update, RunUpdate::Status(_)))
}

#[cfg(test)]
mod tests {
    use regrow_protocol::{JobId, RunId};
    use regrow_runtime::{JobState, JobStatus};

    use super::*;

    fn status(recoveries: u32) -> ToClient {
        let status = JobStatus {
            job: JobId::from_bits(1),
            run: RunId::from_bits(1),
            state: JobState::Running,
            waiting_for: None,
            degraded: None,
            recoveries,
            refused_commands: 0,
            vertices: Vec::new(),
        };
        ToClient::Update(Box::new(RunUpdate::Status(Box::new(status))))
    }

    fn lost() -> ToClient {
        let (planned, panic) = (None, None);
        ToClient::Update(Box::new(RunUpdate::JobMasterLost { planned, panic }))
    }

    fn hear(hears: &HeardReceiver) -> Option<Heard> {
        hears.signals().try_recv().ok()?;
        Some(hears.take().expect("a signal stands for something"))
    }

    #[test]
    fn a_status_takes_the_place_of_one_that_was_not_heard() {
        let (says, hears) = heard_queue();
        (0..100_000).for_each(|recoveries| says.pass_on(status(recoveries)).unwrap());
        says.pass_on(lost()).unwrap();
        (0..3).for_each(|recoveries| says.pass_on(status(recoveries)).unwrap());
        let mut updates = Vec::new();
        while let Some(Heard::Message(message)) = hear(&hears) {
            let ToClient::Update(update) = *message else { panic!("only updates were said") };
            updates.push(match *update {
                RunUpdate::Status(status) => Some(status.recoveries),
                RunUpdate::StoreLost(_)
                | RunUpdate::Accepted { .. }
                | RunUpdate::JobMasterLost { .. }
                | RunUpdate::Recovered(_)
                | RunUpdate::CancelAnswered { .. } => None,
            });
        }
        assert_eq!(updates, [Some(99_999), None, Some(2)]);
    }

    #[test]
    fn one_message_too_many_ends_the_connection_and_what_waits_is_heard() {
        let (says, hears) = heard_queue();
        (0..MESSAGES_MAX).for_each(|_| says.pass_on(lost()).unwrap());
        assert!(says.pass_on(ToClient::Closed).unwrap_err().contains("does not keep up"));
        says.say(Heard::Closed("it did not keep up".to_owned())).unwrap();
        let mut count = 0;
        while let Some(said) = hear(&hears) {
            count += 1;
            assert_eq!(count > MESSAGES_MAX, matches!(said, Heard::Closed(_)));
        }
        assert_eq!(count, MESSAGES_MAX + 1);
        says.pass_on(ToClient::Closed).unwrap();
    }

    #[tokio::test]
    async fn who_waits_until_all_is_heard_goes_on_then() {
        let (says, hears) = heard_queue();
        says.all_heard().await;
        (0..2).for_each(|_| says.pass_on(lost()).unwrap());
        let waits = tokio::spawn(async move {
            says.all_heard().await;
            says
        });
        tokio::task::yield_now().await;
        assert!(hear(&hears).is_some() && !waits.is_finished(), "one waits");
        assert!(hear(&hears).is_some());
        let says = waits.await.unwrap();
        drop(hears);
        assert_eq!(says.say(Heard::NoLeader(String::new())), Err(NobodyHears));
    }
}
