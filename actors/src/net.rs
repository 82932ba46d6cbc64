//! Connections between processes: frames with a length in front, a `Hello` of each side first,
//! heartbeats of their own.
//!
//! Invariants:
//! - One task per connection reads, and one writes; neither touches an actor's state. What arrives
//!   is posted, what leaves is queued, and nobody waits.
//! - Every length, queue and wait has a limit; whoever exceeds one loses the connection, and
//!   nothing else.
//! - A connection that ends says why, once.

mod handshake;
mod link;
mod link_limits;

pub(crate) use handshake::{HandshakeError, handshake};
pub(crate) use link::{Link, LinkEnd, link};
pub(crate) use link_limits::LinkLimits;
