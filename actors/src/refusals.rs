//! What workers say of commands that they refuse.

use regrow_protocol::{Envelope, Epoch, RunId, ToJobMaster, WorkerId};
use tracing::info;

use crate::gateway::{Gateway, Post};

/// Tells of a command for `run` that `worker`, which has seen `highest_term`, refused: in the log, and
/// to whoever leads the run now.
pub(crate) fn tell_refusal(
    worker: WorkerId,
    run: RunId,
    highest_term: u64,
    master: &Gateway<ToJobMaster>,
) {
    info!(%worker, %run, highest_term, "refused a command of an older epoch or an ended run");
    // It is counted whatever the epoch is of whoever hears it.
    let (epoch, message) = (Epoch::default(), ToJobMaster::CommandRefused { worker });
    master.do_send(Post(Envelope { run, epoch, message }));
}
