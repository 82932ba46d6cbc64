//! Where records come from.

mod text;

pub use text::TextSource;
