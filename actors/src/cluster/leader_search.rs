//! The search for whoever leads, and what it tells those who wait for it.

use std::{fmt, pin::pin, time::Duration};

use tokio::time::timeout;

use super::dialer::{Dialed, DialerConfig, Tried, dial};

/// How long a search is silent.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is told of a search that takes long: it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StillLooking {
    /// What was tried, with what was found there.
    pub tried: String,
    /// How long it goes on; without an end if none.
    pub left: Option<Duration>,
}

/// For people.
impl fmt::Display for StillLooking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tried, left } = self;
        write!(f, "no JobManager that leads was found; tried {tried}; still looking")?;
        if let Some(left) = left {
            write!(f, ", for {} s more", left.as_millis().div_ceil(1000))?;
        }
        write!(f, ". Start one, or name its address with -D jobmanager.rpc.addresses=HOST:PORT")
    }
}

/// Looks for the leader, for `limit` at most. If that takes longer than [`PATIENCE`], `slow` is told
/// once. The error says what was tried.
pub(super) async fn search(
    config: &DialerConfig,
    limit: Option<Duration>,
    slow: impl FnOnce(StillLooking),
) -> Result<Dialed, String> {
    let tried = Tried::default();
    let mut dialing = pin!(dial(config, &tried));
    let silent = limit.map_or(PATIENCE, |limit| limit.min(PATIENCE));
    if let Ok(dialed) = timeout(silent, &mut dialing).await {
        return Ok(dialed);
    }
    let left = limit.map(|limit| limit.saturating_sub(silent));
    if left == Some(Duration::ZERO) {
        return Err(tried.told());
    }
    slow(StillLooking { tried: tried.told(), left });
    match left {
        None => Ok(dialing.await),
        Some(left) => timeout(left, dialing).await.map_err(|_| tried.told()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use regrow_protocol::{Hello, Role};

    use super::*;
    use crate::{cluster::leader_places::LeaderPlaces, net::LinkLimits};

    fn config(directory: &Path) -> DialerConfig {
        DialerConfig {
            places: LeaderPlaces::of(Vec::new(), directory.to_owned()),
            hello: Hello::new("here".to_owned(), None, Role::Client),
            limits: LinkLimits::default(),
            backoff_max: Duration::from_millis(500),
            random: Box::new(|| 0),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_that_takes_long_says_so_once_and_ends_when_it_said() {
        let directory = tempfile::tempdir().unwrap();
        let config = config(directory.path());
        let mut said = Vec::new();
        let limit = PATIENCE + Duration::from_secs(7);
        let tried = search(&config, Some(limit), |it| said.push(it)).await.err().unwrap();
        assert!(tried.contains(&directory.path().display().to_string()), "{tried}");
        assert!(tried.contains("no JobManager has led there"), "{tried}");
        let left = Some(Duration::from_secs(7));
        assert_eq!(said, [StillLooking { tried, left }]);
        assert!(said[0].to_string().contains("still looking, for 7 s more"), "{}", said[0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_that_is_to_be_short_says_nothing_before_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let config = config(&directory.path().join("nowhere"));
        let never = |it| panic!("{it}");
        let tried = search(&config, Some(PATIENCE), never).await.err().unwrap();
        assert!(tried.contains("there is no such directory"), "{tried}");
    }
}
