//! Durations and sizes as people write them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The `format` of a duration in the schema. JSON Schema's own `duration` is ISO 8601, which nobody
/// writes by hand.
pub(crate) const DURATION: &str = "duration-text";
/// The `format` of a size in the schema.
pub(crate) const SIZE: &str = "size-text";
/// The `format` of an address to listen on in the schema.
pub(crate) const LISTEN: &str = "listen-address";

/// The `format` of a time zone in the schema.
pub(crate) const ZONE: &str = "time-zone";
/// The `format` of a price in the schema.
pub(crate) const PRICE: &str = "price-text";

/// Reads a duration such as `30m`, `90s` or `1h 30m`. It must be longer than zero.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    humantime::parse_duration(text.trim()).ok().filter(|duration| !duration.is_zero())
}

/// Writes a duration in the largest unit that divides it, so that equal durations look equal.
pub(crate) fn write_duration(duration: Duration) -> String {
    const DAY: u64 = 24 * 60 * 60;
    let seconds = duration.as_secs();
    if duration.subsec_nanos() != 0 {
        return humantime::format_duration(duration).to_string();
    }
    match seconds {
        // A single day reads better as the hours it was most likely written in.
        _ if seconds > DAY && seconds.is_multiple_of(DAY) => format!("{}d", seconds / DAY),
        _ if seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        _ if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// Lets a `Duration` field be written as text.
pub(crate) mod duration_text {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&write_duration(*duration))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        parse_duration(&text).ok_or_else(|| de::Error::custom("not a duration"))
    }
}

/// The schema of a `Duration` field.
pub(crate) struct DurationText;

impl JsonSchema for DurationText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": DURATION, "examples": ["30m", "90s"] })
    }
}

/// The schema of an address to listen on.
pub(crate) struct ListenText;

impl JsonSchema for ListenText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Listen".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": LISTEN, "examples": ["127.0.0.1:8420"] })
    }
}

/// The schema of a URL.
pub(crate) struct UrlText;

impl JsonSchema for UrlText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Url".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "uri" })
    }
}

/// The schema of a time zone.
pub(crate) struct ZoneText;

impl JsonSchema for ZoneText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "TimeZone".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": ZONE, "examples": ["Europe/Berlin", "UTC"] })
    }
}

/// The name of a time zone as the database spells it.
pub(crate) fn parse_zone(text: &str) -> Option<String> {
    let zone = jiff::tz::TimeZone::get(text.trim()).ok()?;
    zone.iana_name().map(str::to_owned)
}

/// Every time zone there is.
pub(crate) fn zones() -> Vec<String> {
    jiff::tz::db().available().map(|name| name.to_string()).collect()
}

/// US dollars, exact to a millionth, written like `2.50`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dollars {
    micros: u64,
}

/// More dollars than this nobody asks for a million tokens.
const MOST_DOLLARS: u64 = 1_000_000;

impl Dollars {
    /// That many millionths of a dollar.
    pub const fn from_micros(micros: u64) -> Self {
        Self { micros }
    }

    /// How many millionths of a dollar.
    pub const fn micros(self) -> u64 {
        self.micros
    }
}

/// Text that is not a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a price; write US dollars like 2.50, with at most six decimals")]
pub struct PriceError;

impl FromStr for Dollars {
    type Err = PriceError;

    fn from_str(text: &str) -> Result<Self, PriceError> {
        let text = text.trim();
        let text = text.strip_prefix('$').unwrap_or(text);
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 6 {
            return Err(PriceError);
        }
        let dollars: u64 = whole.parse().map_err(|_| PriceError)?;
        let micros: u64 = format!("{fraction:0<6}").parse().map_err(|_| PriceError)?;
        if dollars > MOST_DOLLARS {
            return Err(PriceError);
        }
        Ok(Self { micros: dollars * 1_000_000 + micros })
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:06}", self.micros % 1_000_000);
        let end = decimals.trim_end_matches('0').len().max(2);
        write!(f, "{}.{}", self.micros / 1_000_000, &decimals[..end])
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Dollars {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Dollars".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": PRICE, "examples": [2.5, 0.125] })
    }
}

/// A number of bytes, written like `25MB` (a thousand thousands) or `25MiB` (1024 × 1024).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

/// Largest first, and of two equal sizes the one to print first.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

impl ByteSize {
    /// That many bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// That many million bytes.
    pub const fn from_megabytes(megabytes: u64) -> Self {
        Self(megabytes * 1_000_000)
    }

    /// How many bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

/// Text that is not a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a size; write it like 25MB or 2GB")]
pub struct SizeError;

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(SizeError)?;
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim();
        let (_, factor) =
            UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or(SizeError)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        // Nine decimals are more than any unit can tell apart in bytes that matter.
        if whole.is_empty() || fraction.len() > 9 || (number.contains('.') && fraction.is_empty()) {
            return Err(SizeError);
        }
        let whole: u64 = whole.parse().map_err(|_| SizeError)?;
        let bytes = whole.checked_mul(*factor).ok_or(SizeError)?;
        let part = match fraction {
            "" => 0,
            digits => {
                let scale = 10_u128.pow(digits.len() as u32);
                let parts: u128 = digits.parse().map_err(|_| SizeError)?;
                u64::try_from(parts * u128::from(*factor) / scale).map_err(|_| SizeError)?
            }
        };
        bytes.checked_add(part).map(Self).ok_or(SizeError)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, factor) = UNITS
            .iter()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor))
            .unwrap_or(&("B", 1));
        write!(f, "{}{name}", self.0 / factor)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for ByteSize {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": SIZE, "examples": ["25MB", "2GB"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_and_written_as_people_do() {
        let check = |text: &str, written: Option<&str>| {
            assert_eq!(parse_duration(text).map(write_duration).as_deref(), written, "{text:?}");
        };
        check("30m", Some("30m"));
        check("90s", Some("90s"));
        check("120 s", Some("2m"));
        check("1h 30m", Some("90m"));
        check("1h30m", Some("90m"));
        check("24h", Some("24h"));
        check("1day", Some("24h"));
        check("2d", Some("2d"));
        check("1500ms", Some("1s 500ms"));
        for wrong in ["", "soon", "30", "0s", "-5s", "5 fortnights", "99999999999999999999s"] {
            check(wrong, None);
        }
    }

    #[test]
    fn sizes_are_read_and_written_as_people_do() {
        let check = |text: &str, bytes: Option<u64>| {
            assert_eq!(text.parse().ok().map(ByteSize::bytes), bytes, "{text:?}");
        };
        check("25MB", Some(25_000_000));
        check("25 mb", Some(25_000_000));
        check("25MiB", Some(25 << 20));
        check("1.5GB", Some(1_500_000_000));
        check("0B", Some(0));
        for wrong in
            ["", "big", "25", "MB", "1.GB", ".5GB", "1.2.3GB", "-1MB", "99999999999TB", "1e3MB"]
        {
            check(wrong, None);
        }
        assert_eq!(ByteSize::from_megabytes(2000).to_string(), "2GB");
        assert_eq!(ByteSize::from_bytes(0).to_string(), "0B");
        assert_eq!(ByteSize::from_bytes(1 << 20).to_string(), "1MiB");
    }

    #[test]
    fn prices_are_exact_to_a_millionth_of_a_dollar() {
        let check = |text: &str, micros: Option<u64>| {
            assert_eq!(text.parse().ok().map(Dollars::micros), micros, "{text:?}");
        };
        check("2.50", Some(2_500_000));
        check("$10", Some(10_000_000));
        check("0.000001", Some(1));
        check("0", Some(0));
        check("1000000", Some(1_000_000_000_000));
        for wrong in ["", "free", "-1", "1.", ".5", "1e3", "0.0000001", "1000001", "1,50", "1.2.3"]
        {
            check(wrong, None);
        }
        assert_eq!(Dollars::from_micros(2_500_000).to_string(), "2.50");
        assert_eq!(Dollars::from_micros(28_000).to_string(), "0.028");
    }

    #[test]
    fn a_time_zone_is_known_by_its_name_in_whatever_case() {
        assert_eq!(parse_zone("europe/berlin").as_deref(), Some("Europe/Berlin"));
        assert_eq!(parse_zone("UTC").as_deref(), Some("UTC"));
        assert_eq!(parse_zone("Berlin"), None);
        assert!(zones().len() > 400);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(seconds in 1_u64..10_000_000_000, bytes: u64) {
            let duration = Duration::from_secs(seconds);
            prop_assert_eq!(parse_duration(&write_duration(duration)), Some(duration));
            let size = ByteSize::from_bytes(bytes);
            prop_assert_eq!(size.to_string().parse(), Ok(size));
            let price = Dollars::from_micros(bytes % 1_000_000_000_000);
            prop_assert_eq!(price.to_string().parse(), Ok(price));
        }

        #[test]
        fn any_text_is_a_size_or_an_error(text: String) {
            let _ = text.parse::<ByteSize>();
            let _ = parse_duration(&text);
            let _ = text.parse::<Dollars>();
        }
    }
}
