//! Slack's name for a moment and, within a chat, for a message: seconds and a counter behind a point.

use std::fmt;

use talaria_model::Timestamp;

/// A `ts`. Kept as two whole numbers: as a fraction, neighbouring ones would become equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ts {
    seconds: u64,
    micros: u32,
}

impl Ts {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_number(seconds) || !is_number(fraction) || fraction.len() > 6 {
            return None;
        }
        let micros: u32 = format!("{fraction:0<6}").parse().ok()?;
        Some(Self { seconds: seconds.parse().ok()?, micros })
    }

    /// The first moment of that second.
    pub(super) fn at(moment: Timestamp) -> Self {
        Self { seconds: u64::try_from(moment.as_millis() / 1000).unwrap_or(0), micros: 0 }
    }

    pub(super) fn timestamp(self) -> Timestamp {
        let millis =
            self.seconds.saturating_mul(1000).saturating_add(u64::from(self.micros / 1000));
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    /// That many seconds before.
    pub(super) fn before(self, seconds: u64) -> Self {
        Self { seconds: self.seconds.saturating_sub(seconds), ..self }
    }
}

impl fmt::Display for Ts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.seconds, self.micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_messages_have_different_names_and_an_order() {
        let [one, next] = ["1503435956.000247", "1503435956.000248"].map(|text| {
            let ts = Ts::parse(text).unwrap();
            assert_eq!(ts.to_string(), text);
            ts
        });
        assert!(one < next);
        assert_eq!(one.timestamp(), Timestamp::from_millis(1_503_435_956_000));
        assert_eq!(one.before(56).to_string(), "1503435900.000247");
    }

    #[test]
    fn what_is_no_ts_is_refused() {
        for text in ["", ".", "1.", ".1", "-1.0", "1.0000001", "1,5", "99999999999999999999999.0"] {
            assert_eq!(Ts::parse(text), None, "{text:?}");
        }
        assert_eq!(Ts::parse("1360782400").unwrap().to_string(), "1360782400.000000");
    }
}
