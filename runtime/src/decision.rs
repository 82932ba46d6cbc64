//! What one input led to.

use crate::{Action, JobEvent};

/// What one input led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Facts to store, in order.
    pub events: Vec<JobEvent>,
    /// How soon the events (and those still buffered) must be stored.
    pub flush: Flush,
    /// Wishes to carry out now, in order. Those that wait for events come out of a later decision,
    /// upon [`Input::Persisted`](crate::Input::Persisted).
    pub actions: Vec<Action>,
}

/// How soon buffered events must be stored; the greater wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flush {
    /// When the buffer is full or its interval has passed.
    #[default]
    Whenever,
    /// Within 100 ms: somebody looks at the result.
    Soon,
    /// At once: an action waits.
    Now,
}
