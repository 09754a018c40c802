//! What Discord says about how much may still be asked: an empty bucket is not asked again before it is
//! full, because every refusal counts against the address we come from.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use reqwest::header::HeaderMap;
use talaria_model::Timestamp;

use super::refusal::RestError;

/// The most routes and the most empty buckets that are remembered.
const MOST: usize = 4096;

/// How much is looked up within a second. Discord takes fifty requests in all, and thirty are for what is
/// said: <https://discord.com/developers/docs/topics/rate-limits#global-rate-limit>.
const LOOKED_UP: usize = 15;
const SECOND: Duration = Duration::from_secs(1);

/// What is known of the buckets. A route belongs to a bucket that Discord names in its answers; how full
/// it is differs by the channel, guild or webhook that the route is about.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Which bucket a route draws from.
    buckets: HashMap<Route, String>,
    /// Until when there is nothing in a bucket.
    empty: HashMap<String, Timestamp>,
    /// Until when nothing at all may be asked.
    everything: Option<Timestamp>,
    /// When something was looked up within the last second.
    looked_up: VecDeque<Timestamp>,
}

/// A path without the ids that do not matter for its limit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Route {
    pattern: String,
    about: String,
}

impl Route {
    /// The route of a request.
    pub(crate) fn of(method: &str, path: &str) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        let mut pattern = method.to_owned();
        let mut about = String::new();
        let mut before = "";
        for piece in path.split('/').filter(|piece| !piece.is_empty()) {
            pattern.push('/');
            let is_id = piece.bytes().all(|byte| byte.is_ascii_digit());
            let is_major = matches!(before, "channels" | "guilds" | "webhooks") && about.is_empty();
            match (is_id, is_major) {
                (true, true) => {
                    about = piece.to_owned();
                    pattern.push('!');
                }
                // The emoji.
                (true, false) => pattern.push('*'),
                (false, _) if before == "reactions" => pattern.push('*'),
                (false, _) => pattern.push_str(piece),
            }
            before = piece;
        }
        Self { pattern, about }
    }
}

impl Limits {
    /// How long the route has to wait, if it has to.
    pub(crate) fn wait(&self, route: &Route, now: Timestamp) -> Option<Duration> {
        let bucket = self.buckets.get(route).and_then(|bucket| self.empty.get(bucket));
        let alone = self.empty.get(&Self::alone(route));
        let until = [self.everything.as_ref(), bucket, alone].into_iter().flatten().max()?;
        Some(until.since(now)).filter(|wait| !wait.is_zero())
    }

    /// Counts something that is looked up, or says how long it has to wait before.
    pub(crate) fn look_up(&mut self, now: Timestamp) -> Option<Duration> {
        // A clock that was set back leaves moments behind that are yet to come.
        self.looked_up.retain(|at| *at <= now && now.since(*at) < SECOND);
        match self.looked_up.front() {
            Some(first) if self.looked_up.len() >= LOOKED_UP => Some(SECOND - now.since(*first)),
            _ => {
                self.looked_up.push_back(now);
                None
            }
        }
    }

    /// Takes in what the headers of an answer say.
    pub(crate) fn learn(&mut self, route: &Route, headers: &HeaderMap, now: Timestamp) {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let Some(bucket) = text("x-ratelimit-bucket") else { return };
        let bucket = format!("{bucket}/{}", route.about);
        if self.buckets.len() >= MOST && !self.buckets.contains_key(route) {
            self.buckets.clear();
        }
        self.buckets.insert(route.clone(), bucket.clone());
        let seconds = text("x-ratelimit-reset-after").and_then(|after| after.parse::<f64>().ok());
        let after = seconds.and_then(|after| Duration::try_from_secs_f64(after.max(0.0)).ok());
        match (text("x-ratelimit-remaining"), after) {
            (Some("0"), Some(after)) => self.rest(bucket, now, after),
            _ => {
                self.empty.remove(&bucket);
            }
        }
    }

    /// Takes in that an answer was "later".
    pub(crate) fn refused(&mut self, route: &Route, error: &RestError, now: Timestamp) {
        match error {
            RestError::Throttled { after, everything: true } => {
                self.everything = Some(now + *after);
            }
            // A limit below that of the bucket: others who draw from it may go on.
            RestError::Throttled { after, everything: false } => {
                self.rest(Self::alone(route), now, *after);
            }
            RestError::Call(_) | RestError::Refused(_) => {}
        }
    }

    fn rest(&mut self, bucket: String, now: Timestamp, after: Duration) {
        if self.empty.len() >= MOST {
            self.empty.retain(|_, until| *until > now);
        }
        if self.empty.len() < MOST {
            self.empty.insert(bucket, now + after);
        }
    }

    fn alone(route: &Route) -> String {
        format!("{} {}", route.pattern, route.about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(bucket: &str, remaining: &str, after: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("x-ratelimit-bucket", bucket.parse().unwrap());
        headers.insert("x-ratelimit-remaining", remaining.parse().unwrap());
        headers.insert("x-ratelimit-reset-after", after.parse().unwrap());
        headers
    }

    #[test]
    fn a_route_forgets_the_ids_that_do_not_matter() {
        let one = Route::of("PATCH", "/channels/12/messages/34");
        assert_eq!(one, Route::of("PATCH", "/channels/12/messages/56?x=1"));
        assert_ne!(one, Route::of("PATCH", "/channels/13/messages/34"));
        assert_ne!(one, Route::of("DELETE", "/channels/12/messages/34"));
        let heart = Route::of("PUT", "/channels/1/messages/2/reactions/%E2%9D%A4/@me");
        assert_eq!(heart, Route::of("PUT", "/channels/1/messages/3/reactions/x/@me"));
    }

    #[test]
    fn an_empty_bucket_stops_every_route_that_draws_from_it() {
        let (mut limits, now) = (Limits::default(), Timestamp::from_millis(1_000));
        let post = Route::of("POST", "/channels/1/messages");
        let edit = Route::of("PATCH", "/channels/1/messages/9");
        limits.learn(&edit, &headers("b", "1", "4.5"), now);
        assert_eq!(limits.wait(&post, now), None);
        limits.learn(&post, &headers("b", "0", "4.5"), now);
        assert_eq!(limits.wait(&edit, now), Some(Duration::from_millis(4_500)));
        let elsewhere = Route::of("POST", "/channels/2/messages");
        limits.learn(&elsewhere, &headers("b", "3", "4.5"), now);
        assert_eq!(limits.wait(&elsewhere, now), None, "another channel has its own");
        assert_eq!(limits.wait(&edit, now + Duration::from_secs(5)), None);
    }

    #[test]
    fn a_limit_for_everything_stops_everything() {
        let (mut limits, now) = (Limits::default(), Timestamp::from_millis(1_000));
        let error = RestError::Throttled { after: Duration::from_secs(2), everything: true };
        limits.refused(&Route::of("GET", "/users/@me"), &error, now);
        let other = Route::of("POST", "/channels/1/messages");
        assert_eq!(limits.wait(&other, now), Some(Duration::from_secs(2)));
    }

    #[test]
    fn so_much_is_looked_up_in_a_second_and_the_rest_waits() {
        let (mut limits, now) = (Limits::default(), Timestamp::from_millis(10_000));
        for _ in 0..LOOKED_UP {
            assert_eq!(limits.look_up(now), None);
        }
        let later = now + Duration::from_millis(400);
        assert_eq!(limits.look_up(later), Some(Duration::from_millis(600)));
        assert_eq!(limits.look_up(now + SECOND), None);
        assert_eq!(limits.look_up(Timestamp::from_millis(0)), None, "the clock was set back");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut limits, now) = (Limits::default(), Timestamp::from_millis(0));
        for channel in 1..20_000 {
            let route = Route::of("POST", &format!("/channels/{channel}/messages"));
            limits.learn(&route, &headers("b", "0", "1"), now + Duration::from_millis(channel));
        }
        assert!(limits.buckets.len() <= MOST && limits.empty.len() <= MOST);
    }
}
