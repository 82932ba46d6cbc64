//! Who may claim an epoch, and who may write under one.

use regrow_protocol::Epoch;

use crate::StoreError;

/// Whether `epoch` may be claimed, given the highest claim of the run.
pub(crate) fn claim(highest: Option<Epoch>, epoch: Epoch) -> Result<(), StoreError> {
    match highest {
        Some(highest) if highest >= epoch => Err(StoreError::Fenced { refused: epoch, highest }),
        Some(_) | None => Ok(()),
    }
}

/// Whether `epoch` may write: only the highest claim may.
pub(crate) fn admit(highest: Option<Epoch>, epoch: Epoch) -> Result<(), StoreError> {
    if highest == Some(epoch) {
        return Ok(());
    }
    Err(StoreError::Fenced { refused: epoch, highest: highest.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_higher_epoch_is_claimed() {
        assert!(claim(None, Epoch::default()).is_ok());
        assert!(claim(Some(Epoch::new(1, 0)), Epoch::new(1, 1)).is_ok());
        assert!(claim(Some(Epoch::new(1, 1)), Epoch::new(1, 1)).is_err());
        assert!(claim(Some(Epoch::new(2, 0)), Epoch::new(1, 9)).is_err());
    }

    #[test]
    fn only_the_highest_claim_writes() {
        let highest = Some(Epoch::new(2, 0));
        assert!(admit(highest, Epoch::new(2, 0)).is_ok());
        assert!(admit(highest, Epoch::new(1, 5)).is_err());
        assert!(admit(highest, Epoch::new(3, 0)).is_err());
        assert!(admit(None, Epoch::default()).is_err());
    }
}
