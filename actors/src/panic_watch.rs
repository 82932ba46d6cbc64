//! What an actor that dies of a panic can still say: the text of the panic.

use std::{
    cell::RefCell,
    panic::{self, PanicHookInfo},
    sync::Once,
    thread,
};

use crate::effects::panic_text;

/// The text of a panic that the user planned. It is not shown as an error.
pub(crate) const KILLED_AS_PLANNED: &str = "killed as planned";

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Begins to keep the text of panics, and to be silent about planned ones; all others still go to
/// the hook that was there.
pub(crate) fn install() {
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            let text = describe(panicked);
            let planned = text.starts_with(KILLED_AS_PLANNED);
            LAST.with_borrow_mut(|last| *last = Some(text));
            if !planned {
                previous(panicked);
            }
        }));
    });
}

/// The text and place of the panic that unwinds this thread; none if it does not unwind.
pub(crate) fn current_panic() -> Option<String> {
    if !thread::panicking() {
        return None;
    }
    let text = LAST.with_borrow_mut(Option::take);
    Some(text.unwrap_or_else(|| "a panic without a text".to_owned()))
}

fn describe(panicked: &PanicHookInfo<'_>) -> String {
    let text = panic_text_of(panicked);
    match panicked.location() {
        Some(place) => format!("{text} (at {place})"),
        None => text,
    }
}

fn panic_text_of(panicked: &PanicHookInfo<'_>) -> String {
    match panicked.payload_as_str() {
        Some(text) => text.to_owned(),
        None => panic_text(&()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct Dying(mpsc::Sender<Option<String>>);

    impl Drop for Dying {
        fn drop(&mut self) {
            self.0.send(current_panic()).unwrap();
        }
    }

    #[test]
    fn who_is_dropped_by_a_panic_knows_its_text() {
        install();
        let (sender, receiver) = mpsc::channel();
        let dying = Dying(sender.clone());
        let died = panic::catch_unwind(move || {
            let _dying = dying;
            panic!("{KILLED_AS_PLANNED}");
        });
        assert!(died.is_err());
        let text = receiver.recv().unwrap().unwrap();
        assert!(text.starts_with("killed as planned (at "), "{text}");
        drop(Dying(sender));
        assert_eq!(receiver.recv().unwrap(), None);
    }
}
