//! Kills that a user plans, to watch a job regrow.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// When and how a `JobMaster` is to die; fires once over all lives of a run.
///
/// As text: a part of the tasks such as `50%` or a time such as `2s`, and `:panic` behind it for a
/// panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillPoint {
    /// When.
    pub when: KillWhen,
    /// How.
    pub how: KillHow,
}

impl KillPoint {
    /// The part of the tasks at which it fires; none if it fires at a time.
    pub const fn percent(self) -> Option<u32> {
        match self.when {
            KillWhen::Percent(percent) => Some(percent),
            KillWhen::Elapsed(_) => None,
        }
    }
}

/// When a planned kill fires, always before the job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillWhen {
    /// When this part of the known tasks has finished, 0 to 100; an undecided vertex counts one.
    Percent(u32),
    /// When this long has passed since the run began in this process.
    Elapsed(Duration),
}

/// How a `JobMaster` dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KillHow {
    /// The actor is dropped between two messages, its event buffer with it.
    Stop,
    /// The actor panics.
    Panic,
}

/// The text is no kill point.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "kill point {found:?} is not valid: use a part of the tasks from `0%` to `100%`, or a time such \
     as `2s` or `500ms`, and add `:panic` to make the JobMaster panic"
)]
pub struct KillPointError {
    found: String,
}

impl FromStr for KillPoint {
    type Err = KillPointError;

    fn from_str(text: &str) -> Result<Self, KillPointError> {
        let (when, how) = match text.strip_suffix(":panic") {
            Some(when) => (when, KillHow::Panic),
            None => (text, KillHow::Stop),
        };
        let when =
            KillWhen::parse(when).ok_or_else(|| KillPointError { found: text.to_owned() })?;
        Ok(Self { when, how })
    }
}

impl KillWhen {
    fn parse(text: &str) -> Option<Self> {
        if let Some(percent) = text.strip_suffix('%') {
            let digits = !percent.is_empty() && percent.bytes().all(|byte| byte.is_ascii_digit());
            let percent = percent.parse().ok().filter(|percent| digits && *percent <= 100)?;
            return Some(Self::Percent(percent));
        }
        humantime::parse_duration(text).ok().map(Self::Elapsed)
    }
}

impl fmt::Display for KillPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.when {
            KillWhen::Percent(percent) => write!(f, "{percent}%")?,
            KillWhen::Elapsed(time) => write!(f, "{}", humantime::format_duration(time))?,
        }
        match self.how {
            KillHow::Stop => Ok(()),
            KillHow::Panic => f.write_str(":panic"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Option<KillPoint> {
        text.parse().ok()
    }

    #[test]
    fn a_kill_point_is_a_part_of_the_tasks_or_a_time() {
        let (stop, panic) = (KillHow::Stop, KillHow::Panic);
        let time = |ms| KillWhen::Elapsed(Duration::from_millis(ms));
        for (text, when, how) in [
            ("50%", KillWhen::Percent(50), stop),
            ("0%", KillWhen::Percent(0), stop),
            ("100%:panic", KillWhen::Percent(100), panic),
            ("2s", time(2000), stop),
            ("500ms:panic", time(500), panic),
            ("1m 30s", time(90_000), stop),
        ] {
            assert_eq!(parse(text), Some(KillPoint { when, how }), "{text}");
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "%", "101%", "-1%", "+5%", "1.5%", "50", "soon", ":panic", "2s:stop"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_error_says_what_is_allowed() {
        let error = "half".parse::<KillPoint>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "kill point \"half\" is not valid: use a part of the tasks from `0%` to `100%`, or a \
             time such as `2s` or `500ms`, and add `:panic` to make the JobMaster panic"
        );
    }

    proptest! {
        #[test]
        fn a_kill_point_survives_text(
            percent in prop_oneof![Just(None), (0_u32..=100).prop_map(Some)],
            ms in 0_u64..100_000_000,
            panics in any::<bool>(),
        ) {
            let elapsed = KillWhen::Elapsed(Duration::from_millis(ms));
            let when = percent.map_or(elapsed, KillWhen::Percent);
            let how = if panics { KillHow::Panic } else { KillHow::Stop };
            let point = KillPoint { when, how };
            prop_assert_eq!(parse(&point.to_string()), Some(point));
        }
    }
}
