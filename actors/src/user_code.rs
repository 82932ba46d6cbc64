//! Calls user code so that its panics become failures with their text and place.

use std::{
    cell::{Cell, RefCell},
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

use regrow_protocol::TaskFailure;

use crate::effects::panic_text;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Calls `code`; a panic in it prints nothing and is returned as a failure.
pub(crate) fn guarded<T>(code: impl FnOnce() -> Result<T, TaskFailure>) -> Result<T, TaskFailure> {
    HOOK.call_once(install_hook);
    let outer = GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(code));
    GUARDED.set(outer);
    result.unwrap_or_else(|payload| {
        let place = PLACE.with_borrow_mut(Option::take);
        Err(TaskFailure::Panicked {
            message: panic_text(&*payload),
            location: place.unwrap_or_else(|| "an unknown place".to_owned()),
        })
    })
}

/// Keeps the place of panics in guarded code; all others go to the hook that was there.
fn install_hook() {
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if !GUARDED.get() {
            previous(panicked);
            return;
        }
        let place = panicked.location().map(ToString::to_string);
        PLACE.with_borrow_mut(|kept| *kept = place);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_failure_with_its_text_and_place() {
        let line = line!() + 1;
        let result: Result<(), _> = guarded(|| panic!("no {}", "way"));
        let Err(TaskFailure::Panicked { message, location }) = result else {
            panic!("{result:?}");
        };
        assert_eq!(message, "no way");
        assert!(location.starts_with(&format!("{}:{line}:", file!())), "{location}");
    }

    #[test]
    fn code_after_a_guarded_panic_is_not_guarded() {
        let failed: Result<(), _> = guarded(|| guarded(|| panic!("inner")));
        assert!(failed.is_err());
        assert!(!GUARDED.get());
        assert_eq!(guarded(|| Ok(7)), Ok(7));
    }
}
