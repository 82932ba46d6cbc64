//! What a builder gives back.

use std::fmt::Display;

use super::Written;

/// What a builder gives back: all that its job writes. One [`Written`], a tuple of them, an array or a
/// `Vec`; or a `Result` of these, whose error says what is wrong with the job.
///
/// A data set that is not written anywhere is never computed; that each builder must give something
/// back, and the compiler's warning about a value that is not used, keep one from being forgotten.
pub trait Sinks {
    /// Takes them.
    ///
    /// # Errors
    /// When the builder found something wrong, or wrote nothing.
    fn accept(self) -> Result<(), String>;
}

impl Sinks for Written {
    fn accept(self) -> Result<(), String> {
        Ok(())
    }
}

impl<S: Sinks> Sinks for Vec<S> {
    fn accept(self) -> Result<(), String> {
        if self.is_empty() {
            return Err(NOTHING.to_owned());
        }
        self.into_iter().try_for_each(Sinks::accept)
    }
}

impl<S: Sinks, const N: usize> Sinks for [S; N] {
    fn accept(self) -> Result<(), String> {
        if N == 0 {
            return Err(NOTHING.to_owned());
        }
        self.into_iter().try_for_each(Sinks::accept)
    }
}

impl<S: Sinks, E: Display> Sinks for Result<S, E> {
    fn accept(self) -> Result<(), String> {
        self.map_err(|error| error.to_string())?.accept()
    }
}

const NOTHING: &str = "the job writes nothing: give back at least one data set that is written";

macro_rules! tuples {
    ($($sinks:ident)+) => {
        impl<$($sinks: Sinks),+> Sinks for ($($sinks,)+) {
            fn accept(self) -> Result<(), String> {
                #[expect(non_snake_case, reason = "each is called as its type")]
                let ($($sinks,)+) = self;
                $($sinks.accept()?;)+
                Ok(())
            }
        }
    };
}

tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_sinks_are_accepted_and_none_is_refused() {
        let sink = Written::new;
        assert_eq!((sink(), [sink(), sink()], vec![sink()]).accept(), Ok(()));
        assert_eq!(Ok::<_, String>(sink()).accept(), Ok(()));
        assert_eq!(Err::<Written, _>("no such column").accept(), Err("no such column".to_owned()));
        assert!(Vec::<Written>::new().accept().unwrap_err().contains("writes nothing"));
    }
}
