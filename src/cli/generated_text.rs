//! Text that is made up: the same for the same seed.

use std::io::{self, Write};

use crate::split_mix::{STEP, mix};

/// The text from which lines are taken; see `examples/data/README.md`.
const SOURCE: &str = include_str!("../../examples/data/king_james_bible.txt");

/// Lines that are taken in a row, so that text stays text.
const LINES_IN_A_ROW: usize = 16;

/// Lines of the bundled text, in an order that a seed decides.
pub(crate) struct GeneratedText {
    /// Where each line starts.
    starts: Vec<usize>,
    state: u64,
}

impl GeneratedText {
    /// Begins the text of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        let ends = memchr::memchr_iter(b'\n', SOURCE.as_bytes()).map(|index| index + 1);
        Self { starts: std::iter::once(0).chain(ends).collect(), state: seed }
    }

    /// Writes about `bytes` bytes, in whole lines: at least that many, if it is not 0.
    pub(crate) fn write(&mut self, bytes: u64, out: &mut dyn Write) -> io::Result<()> {
        let lines = self.starts.len() - 1;
        let mut written = 0;
        while written < bytes {
            let first = usize::try_from(self.random() % lines as u64).unwrap_or(0);
            let last = lines.min(first + LINES_IN_A_ROW);
            let text = &SOURCE[self.starts[first]..self.starts[last]];
            out.write_all(text.as_bytes())?;
            written += text.len() as u64;
        }
        Ok(())
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seed: u64, bytes: u64) -> Vec<u8> {
        let mut text = Vec::new();
        GeneratedText::new(seed).write(bytes, &mut text).unwrap();
        text
    }

    #[test]
    fn a_seed_decides_the_text() {
        assert_eq!(text(7, 100_000), text(7, 100_000));
        assert_ne!(text(7, 100_000), text(8, 100_000));
        assert!(text(7, 200_000).starts_with(&text(7, 100_000)));
    }

    #[test]
    fn the_text_is_ascii_in_whole_lines_of_about_the_size() {
        let text = text(0, 100_000);
        assert!(text.is_ascii() && text.ends_with(b"\n"));
        assert!((100_000..102_000).contains(&text.len()), "{}", text.len());
    }
}
