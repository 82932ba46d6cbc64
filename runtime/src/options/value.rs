//! Times and sizes, as Flink's settings write them.

use std::time::Duration;

/// The longest time that a setting may name: beyond it lies a typing error.
const DURATION_MAX: Duration = Duration::from_hours(24 * 36_500);

/// The names of each unit of sizes, and its bytes. As Flink's, all are powers of 1024.
const SIZE_UNITS: [(&[&str], u64); 5] = [
    (&["tb", "t", "tib", "tebibytes"], 1 << 40),
    (&["gb", "g", "gib", "gibibytes"], 1 << 30),
    (&["mb", "m", "mib", "mebibytes"], 1 << 20),
    (&["kb", "k", "kib", "kibibytes"], 1 << 10),
    (&["b", "", "byte", "bytes"], 1),
];

/// Reads a time such as `30 s`, `3 min`, `500 ms`, `1h 30m` or `0`; none if it is no time, has no
/// unit, or is longer than a hundred years.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text.trim() == "0" {
        return Some(Duration::ZERO);
    }
    humantime::parse_duration(text.trim()).ok().filter(|time| *time <= DURATION_MAX)
}

/// Reads a size such as `1 mb`, `64kb` or `512` (bytes); none if it is no size.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, bytes) = SIZE_UNITS.iter().find(|(names, _)| names.contains(&unit.trim_start()))?;
    number.parse::<u64>().ok()?.checked_mul(*bytes)
}

/// Writes a time in its largest whole unit; reading it gives the same.
pub(super) fn format_duration(time: Duration) -> String {
    let ms = time.as_millis();
    if ms * 1_000_000 != time.as_nanos() {
        return humantime::format_duration(time).to_string();
    }
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")];
    let unit = units.into_iter().find(|(length, _)| ms > 0 && ms.is_multiple_of(*length));
    let (length, name) = unit.unwrap_or((1, "ms"));
    format!("{} {name}", ms / length)
}

/// Writes a size in its largest whole unit; reading it gives the same.
pub fn format_size(bytes: u64) -> String {
    let unit =
        SIZE_UNITS.into_iter().find(|(_, length)| bytes > 0 && bytes.is_multiple_of(*length));
    let (names, length) = unit.unwrap_or((&["b"], 1));
    format!("{} {}", bytes / length, names[0])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_as_flink_and_people_write_them() {
        for (text, ms) in [
            ("30 s", 30_000),
            ("3 min", 180_000),
            ("500 ms", 500),
            ("1 h", 3_600_000),
            ("1 d", 86_400_000),
            ("2m30s", 150_000),
            (" 5s ", 5000),
            ("0", 0),
            ("0 ms", 0),
        ] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "30", "-1 s", "s", "soon", "200 years", "99999999999999999999 s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in [
            ("1 mb", 1 << 20),
            ("64 kb", 64 << 10),
            ("64KB", 64 << 10),
            ("2g", 2 << 30),
            ("3 TiB", 3 << 40),
            ("512", 512),
            ("7 bytes", 7),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in ["", "mb", "1.5 mb", "-1 kb", "1 pb", "1 m b", "17000000 tb"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes in any::<u64>(), ms in 0_u64..1 << 40, unit in 0..5_u32) {
            let bytes = (bytes >> 44) << (10 * unit);
            prop_assert_eq!(parse_size(&format_size(bytes)), Some(bytes));
            let time = Duration::from_millis(ms);
            prop_assert_eq!(parse_duration(&format_duration(time)), Some(time));
            let time = Duration::from_nanos(ms);
            prop_assert_eq!(parse_duration(&format_duration(time)), Some(time));
        }
    }
}
