//! The one timer of a pure state machine.

use crate::Timestamp;

/// Remembers which wake-up was asked for, so that at most one useful one is pending.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    pending: Option<Timestamp>,
}

impl Alarm {
    /// The moment to ask for, if `next` is earlier than what was asked for already.
    pub(crate) fn set(&mut self, next: Option<Timestamp>) -> Option<Timestamp> {
        let next = next?;
        if self.pending.is_some_and(|pending| pending <= next) {
            return None;
        }
        self.pending = Some(next);
        Some(next)
    }

    /// Notes that a wake-up came at `now`.
    pub(crate) fn rang(&mut self, now: Timestamp) {
        self.pending = self.pending.filter(|pending| *pending > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flapping_outages_leave_one_wake_up_pending() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.set(Some(Timestamp(50))), Some(Timestamp(50)));
        assert_eq!(alarm.set(Some(Timestamp(60))), None);
        alarm.rang(Timestamp(50));
        assert_eq!(alarm.set(Some(Timestamp(60))), Some(Timestamp(60)));
        assert_eq!(alarm.set(Some(Timestamp(55))), Some(Timestamp(55)));
        assert_eq!(alarm.set(None), None);
    }
}
