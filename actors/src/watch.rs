//! Death watch. An actix `Supervisor` does not survive a panic in a handler; a dropped guard does
//! tell, because actix drops the actor on every path out: stop, panic, shutdown of its thread.

use actix::{Message, Recipient};

/// The watched actor is gone, for whatever reason.
#[derive(Clone, Debug)]
pub struct Terminated<K>(pub K);

impl<K: 'static> Message for Terminated<K> {
    type Result = ();
}

/// Sits as a field in the watched actor and speaks when dropped.
pub struct DeathWatch<K: Clone + Send + 'static> {
    key: K,
    watcher: Recipient<Terminated<K>>,
}

impl<K: Clone + Send + 'static> DeathWatch<K> {
    /// Tells `watcher` when the actor that owns the guard goes away.
    pub fn new(key: K, watcher: Recipient<Terminated<K>>) -> Self {
        Self { key, watcher }
    }
}

impl<K: Clone + Send + 'static> Drop for DeathWatch<K> {
    fn drop(&mut self) {
        self.watcher.do_send(Terminated(self.key.clone()));
    }
}
