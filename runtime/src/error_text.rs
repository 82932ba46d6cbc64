//! Errors as one line of text, for messages and reports that carry no error values.

use std::error::Error;

/// `error` and all its causes, separated by colons; none twice where an error tells its cause itself.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let told = inner.to_string();
        if !text.ends_with(&told) {
            text.push_str(": ");
            text.push_str(&told);
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use thiserror::Error;

    use super::*;

    #[derive(Debug, Error)]
    #[error("cannot read")]
    struct Silent(#[source] io::Error);

    #[derive(Debug, Error)]
    #[error("cannot read: {0}")]
    struct Telling(#[source] io::Error);

    #[test]
    fn each_cause_is_told_once() {
        let cause = || io::Error::other("no disk");
        assert_eq!(with_causes(&cause()), "no disk");
        assert_eq!(with_causes(&Silent(cause())), "cannot read: no disk");
        assert_eq!(with_causes(&Telling(cause())), "cannot read: no disk");
    }
}
