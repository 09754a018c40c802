//! When a conversation begins anew by itself.

use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use talaria_model::Timestamp;

/// When a conversation begins anew by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResetPolicy {
    /// What ends it.
    pub mode: ResetMode,
    /// The hour of the day at which days change, 0 to 23.
    pub at_hour: u8,
    /// How long nothing may happen.
    pub idle: Duration,
    /// Whether people are told.
    pub notify: Notify,
}

impl Default for ResetPolicy {
    fn default() -> Self {
        Self {
            mode: ResetMode::Both,
            at_hour: 4,
            idle: Duration::from_secs(1440 * 60),
            notify: Notify::Tell,
        }
    }
}

/// What ends a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetMode {
    /// Nothing but a person.
    Never,
    /// That nothing happened for long.
    Idle,
    /// That a day is over.
    Daily,
    /// Whichever comes first.
    Both,
}

/// Whether people are told that a conversation has begun anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    /// Yes, if something is lost by it.
    Tell,
    /// No: nobody reads along on this platform.
    Quietly,
}

/// Why a conversation is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expiry {
    /// Nothing happened for long.
    Idle,
    /// A day is over.
    Daily,
}

/// Whether something still works for a conversation that nobody speaks in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// Nothing does.
    Quiet,
    /// Something does, so it is not over.
    Working,
}

/// Whether a conversation in which something happened last at `active` is over at `now`.
pub fn expired(
    active: Timestamp,
    now: Timestamp,
    policy: &ResetPolicy,
    zone: &TimeZone,
    background: Background,
) -> Option<Expiry> {
    if background == Background::Working {
        return None;
    }
    let idle = || (now > active + policy.idle).then_some(Expiry::Idle);
    let daily = || (active < day_began(now, policy.at_hour, zone)).then_some(Expiry::Daily);
    match policy.mode {
        ResetMode::Never => None,
        ResetMode::Idle => idle(),
        ResetMode::Daily => daily(),
        ResetMode::Both => idle().or_else(daily),
    }
}

/// The last moment, at or before `now`, at which the clocks of the zone struck the hour. On a day
/// that skips the hour it is the moment of the skip; on a day that has it twice, the first.
fn day_began(now: Timestamp, hour: u8, zone: &TimeZone) -> Timestamp {
    let Ok(instant) = jiff::Timestamp::from_millisecond(now.as_millis()) else { return now };
    let today = instant.to_zoned(zone.clone()).date();
    let strike = Time::constant(i8::try_from(hour.min(23)).unwrap_or(4), 0, 0, 0);
    let struck = |date: jiff::civil::Date| {
        let at = date.to_datetime(strike).to_zoned(zone.clone()).ok()?.timestamp();
        Some(Timestamp::from_millis(at.as_millisecond()))
    };
    let yesterday = || today.checked_sub(1.day()).ok().and_then(struck);
    // A moment outside of what the calendar covers ends nothing.
    let never = Timestamp::from_millis(i64::MIN);
    struck(today).filter(|at| *at <= now).or_else(yesterday).unwrap_or(never)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        let at: jiff::Timestamp = text.parse().unwrap();
        Timestamp::from_millis(at.as_millisecond())
    }

    fn policy(mode: ResetMode, at_hour: u8) -> ResetPolicy {
        ResetPolicy { mode, at_hour, ..ResetPolicy::default() }
    }

    #[track_caller]
    fn check(zone: &str, policy: ResetPolicy, active: &str, now: &str, expected: Option<Expiry>) {
        let zone = TimeZone::posix(zone).unwrap();
        let quiet = expired(at(active), at(now), &policy, &zone, Background::Quiet);
        assert_eq!(quiet, expected, "{active} to {now}");
        let working = expired(at(active), at(now), &policy, &zone, Background::Working);
        assert_eq!(working, None, "something still works");
    }

    const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

    #[test]
    fn a_conversation_is_over_when_idle_or_when_the_day_is() {
        use ResetMode::{Both, Daily, Idle, Never};
        let (eve, dawn) = ("2026-11-14T20:00:00Z", "2026-11-15T02:59:59Z");
        for (mode, now, expected) in [
            (Never, "2036-11-14T20:00:00Z", None),
            (Idle, "2026-11-15T20:00:00Z", None),
            (Idle, "2026-11-15T20:00:01Z", Some(Expiry::Idle)),
            (Daily, dawn, None),
            (Daily, "2026-11-15T03:00:00Z", Some(Expiry::Daily)),
            (Both, dawn, None),
            (Both, "2026-11-15T03:00:00Z", Some(Expiry::Daily)),
            (Both, "2026-11-15T20:00:01Z", Some(Expiry::Idle)),
        ] {
            check(BERLIN, policy(mode, 4), eve, now, expected);
        }
        let at_four = policy(Daily, 4);
        check(BERLIN, at_four, "2026-11-15T03:00:00Z", "2026-11-16T02:59:59Z", None);
    }

    #[test]
    fn days_of_twenty_three_and_twenty_five_hours_change_when_the_clocks_say_so() {
        let daily = |hour| policy(ResetMode::Daily, hour);
        // 2026-03-29 has no hour two in Berlin: 01:59:59+01 is followed by 03:00:00+02, at 01:00Z.
        let saturday = "2026-03-28T12:00:00Z";
        check(BERLIN, daily(2), saturday, "2026-03-29T00:59:59Z", None);
        check(BERLIN, daily(2), saturday, "2026-03-29T01:00:00Z", Some(Expiry::Daily));
        check(BERLIN, daily(4), saturday, "2026-03-29T01:59:59Z", None);
        check(BERLIN, daily(4), saturday, "2026-03-29T02:00:00Z", Some(Expiry::Daily));
        // 2026-10-25 has hour two twice: first at 00:00Z, then again at 01:00Z.
        check(BERLIN, daily(2), "2026-10-24T12:00:00Z", "2026-10-24T23:59:59Z", None);
        check(
            BERLIN,
            daily(2),
            "2026-10-24T12:00:00Z",
            "2026-10-25T00:00:00Z",
            Some(Expiry::Daily),
        );
        check(BERLIN, daily(2), "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", None);
        check(
            BERLIN,
            daily(4),
            "2026-10-24T12:00:00Z",
            "2026-10-25T03:00:00Z",
            Some(Expiry::Daily),
        );
    }

    #[test]
    fn a_day_changes_once_in_every_zone_and_a_clock_that_jumps_back_ends_nothing() {
        for zone in ["UTC0", "EST5EDT,M3.2.0,M11.1.0", "<+1245>-12:45", BERLIN] {
            for hour in [0, 4, 23] {
                let zone = TimeZone::posix(zone).unwrap();
                let mut now = at("2026-01-01T12:00:00Z");
                let mut days = 0;
                for _ in 0..365 * 24 {
                    let next = now + Duration::from_secs(3600);
                    let policy = policy(ResetMode::Daily, hour);
                    days +=
                        u32::from(expired(now, next, &policy, &zone, Background::Quiet).is_some());
                    assert_eq!(expired(next, now, &policy, &zone, Background::Quiet), None);
                    now = next;
                }
                assert!((364..=365).contains(&days), "{days} days");
            }
        }
    }
}
