//! Errors as one line of text.

pub(crate) use regrow_runtime::with_causes;
