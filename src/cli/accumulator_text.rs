//! Shows what a job accumulated and collected.

use regrow_protocol::{Accumulator, Accumulators};
use serde_json::{Map, Value, json};

use crate::accumulators::shown;

/// Lines that people are shown at most; `--json` has all.
const LINES_MAX: usize = 50;

/// A line per accumulator, for people.
pub(crate) fn lines(accumulators: &Accumulators) -> Vec<String> {
    let line = |(name, value): (&str, &Accumulator)| match value {
        Accumulator::Collected(collected) => {
            format!("  {name}: {} records were collected", collected.records)
        }
        Accumulator::Sum(_)
        | Accumulator::Min(_)
        | Accumulator::Max(_)
        | Accumulator::Custom(_) => format!("  {name}: {}", shown(value).unwrap_or_default()),
    };
    let mut lines: Vec<String> = accumulators.iter().take(LINES_MAX).map(line).collect();
    if accumulators.len() > LINES_MAX {
        let left_out = accumulators.len() - LINES_MAX;
        lines.push(format!("  and {left_out} more accumulators, which --json shows"));
    }
    lines
}

/// Numbers by name; how much there is of what is none.
pub(crate) fn object(accumulators: &Accumulators) -> Value {
    let value = |value: &Accumulator| match value {
        Accumulator::Sum(number) | Accumulator::Min(number) | Accumulator::Max(number) => {
            json!(number)
        }
        Accumulator::Custom(values) => {
            let bytes: usize = values.iter().map(|value| value.0.len()).sum();
            json!({"values": values.len(), "bytes": bytes})
        }
        Accumulator::Collected(collected) => {
            json!({"records": collected.records, "bytes": collected.bytes.0.len()})
        }
    };
    let named = accumulators.iter().map(|(name, found)| (name.to_owned(), value(found)));
    Value::Object(named.collect::<Map<String, Value>>())
}

#[cfg(test)]
mod tests {
    use regrow_protocol::OpaqueBytes;

    use super::*;

    #[test]
    fn numbers_are_shown_and_the_rest_is_measured() {
        let mut found = Accumulators::default();
        found.add("bad lines", Accumulator::Sum(7));
        found.add("lengths", Accumulator::Custom(vec![OpaqueBytes(vec![0; 12])]));
        assert_eq!(
            lines(&found),
            ["  bad lines: 7", "  lengths: 1 values of the program's own type, 12 bytes"]
        );
        let expected = json!({"bad lines": 7, "lengths": {"values": 1, "bytes": 12}});
        assert_eq!(object(&found), expected);
    }

    #[test]
    fn people_are_not_flooded() {
        let mut found = Accumulators::default();
        for name in 0..70 {
            found.add(&name.to_string(), Accumulator::Sum(1));
        }
        let lines = lines(&found);
        assert_eq!(lines.len(), LINES_MAX + 1);
        assert!(lines[LINES_MAX].contains("20 more"));
    }
}
