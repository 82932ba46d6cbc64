//! The end of a leadership that another process is to take over: what is under way is waited for.

use std::{convert::Infallible, time::Duration};

use tokio::{sync::mpsc, time::timeout};

/// How long a leadership that is handed over waits for what is under way: events that are being
/// stored, files that are being published. What is cut off then is as after a kill: finish records
/// and manifests stand in for it.
pub(crate) const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits until nothing is under way any more.
pub(crate) struct HandOverEnd(mpsc::Receiver<Infallible>);

/// Something that is under way; over when it is dropped.
#[derive(Clone, Debug)]
pub(crate) struct HandOverPart {
    _held: mpsc::Sender<Infallible>,
}

/// A hand-over of which one part is under way.
pub(crate) fn hand_over() -> (HandOverPart, HandOverEnd) {
    let (held, ends) = mpsc::channel(1);
    (HandOverPart { _held: held }, HandOverEnd(ends))
}

impl HandOverEnd {
    /// Waits until all parts are over, for [`HAND_OVER_TIMEOUT`] at most; says whether they are.
    pub(crate) async fn wait(mut self) -> bool {
        // Nothing is ever sent: this ends when the last part is dropped.
        timeout(HAND_OVER_TIMEOUT, self.0.recv()).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_hand_over_ends_with_its_last_part_or_after_its_time() {
        let (part, end) = hand_over();
        let other = part.clone();
        let waiting = tokio::spawn(end.wait());
        drop(part);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(other);
        assert!(waiting.await.unwrap());

        let (_part, end) = hand_over();
        assert!(!end.wait().await);
    }
}
