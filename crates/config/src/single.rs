//! One single value as its type wants it, and what to say when it does not fit.

use std::net::SocketAddr;

use serde_json::Value;
use talaria_model::Proxy;
use url::Url;

use crate::nearest::nearest;
use crate::shape::{Kind, Shape};
use crate::units::{self, ByteSize, Dollars};
use crate::yaml::{Scalar, Style};

/// What stands where a secret would.
pub(crate) const HIDDEN: &str = "(hidden)";

/// The longest value that is repeated in a message.
const LONGEST_VALUE: usize = 80;

/// Why a single value does not fit.
pub(crate) struct Mismatch {
    pub(crate) expectation: String,
    /// The value turned out to contain what nobody should see.
    pub(crate) is_private: bool,
}

impl<T: Into<String>> From<T> for Mismatch {
    fn from(expectation: T) -> Self {
        Self { expectation: expectation.into(), is_private: false }
    }
}

pub(crate) fn single(scalar: &Scalar, shape: &Shape<'_>, kind: Kind) -> Result<Value, Mismatch> {
    let text = scalar.text.as_str();
    if kind != Kind::Text && scalar.style == Style::Quoted {
        return Err("is text; write it without quotes".into());
    }
    match kind {
        Kind::Boolean => {
            boolean(text).map(Value::Bool).ok_or_else(|| "is neither true nor false".into())
        }
        Kind::Integer => integer(text, shape),
        Kind::Number => number(text, shape),
        _ => written(text, shape).map(Value::String),
    }
}

pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn integer(text: &str, shape: &Shape<'_>) -> Result<Value, Mismatch> {
    let Ok(number) = text.parse::<i128>() else {
        return Err("is not a whole number".into());
    };
    let (least, most) = shape.range();
    match (least, most) {
        (Some(least), _) if number < least => {
            Err(format!("is too small; the least is {least}").into())
        }
        (_, Some(most)) if number > most => Err(format!("is too large; the most is {most}").into()),
        _ => match (u64::try_from(number), i64::try_from(number)) {
            (Ok(number), _) => Ok(number.into()),
            (_, Ok(number)) => Ok(number.into()),
            _ => Err("is not a whole number".into()),
        },
    }
}

fn number(text: &str, shape: &Shape<'_>) -> Result<Value, Mismatch> {
    let Some(number) = text.parse::<f64>().ok().filter(|number| number.is_finite()) else {
        return Err("is not a number".into());
    };
    match shape.limits() {
        (Some(least), _) if number < least => {
            Err(format!("is too small; the least is {least}").into())
        }
        (_, Some(most)) if number > most => Err(format!("is too large; the most is {most}").into()),
        _ => Ok(number.into()),
    }
}

fn written(text: &str, shape: &Shape<'_>) -> Result<String, Mismatch> {
    let choices = shape.choices();
    if !choices.is_empty() {
        if choices.contains(&text) {
            return Ok(text.to_owned());
        }
        let hint = nearest(text, choices.iter().copied())
            .map_or(String::new(), |close| format!("; did you mean {close}?"));
        return Err(format!("is not one of {}{hint}", choices.join(", ")).into());
    }
    if text.is_empty() && !shape.may_be_empty() {
        return Err("is empty".into());
    }
    match shape.format() {
        Some(units::DURATION) => units::parse_duration(text)
            .map(units::write_duration)
            .ok_or_else(|| "is not a duration; write it like 30s, 5m or 2h".into()),
        Some(units::SIZE) => text
            .parse::<ByteSize>()
            .map(|size| size.to_string())
            .map_err(|error| format!("is {error}").into()),
        Some(units::LISTEN) => text
            .parse::<SocketAddr>()
            .map(|address| address.to_string())
            .map_err(|_| "is not an address and port; write it like 127.0.0.1:8420".into()),
        Some(units::ZONE) => units::parse_zone(text).ok_or_else(|| zone_hint(text).into()),
        Some(units::PRICE) => text
            .parse::<Dollars>()
            .map(|price| price.to_string())
            .map_err(|error| format!("is {error}").into()),
        Some(Proxy::FORMAT) => {
            text.parse::<Proxy>().map(|_| text.to_owned()).map_err(|error| Mismatch {
                expectation: format!("is {error}"),
                is_private: Proxy::credentials(text).is_some(),
            })
        }
        Some("uri") => url(text),
        _ => Ok(text.to_owned()),
    }
}

fn zone_hint(text: &str) -> String {
    let zones = units::zones();
    let city =
        |zone: &&String| zone.rsplit('/').next().is_some_and(|c| c.eq_ignore_ascii_case(text));
    let meant = zones.iter().find(city).map(String::as_str);
    let meant = meant.or_else(|| nearest(text, zones.iter().map(String::as_str)));
    let hint = meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"));
    format!("is not a time zone; write it like Europe/Berlin or UTC{hint}")
}

fn url(text: &str) -> Result<String, Mismatch> {
    match Url::parse(text) {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => Err(Mismatch {
            expectation: "carries a name or password; keep those in settings of their own".into(),
            is_private: true,
        }),
        Ok(_) => Ok(text.to_owned()),
        // Text that is no URL may still carry a password before an @.
        Err(_) => Err(Mismatch {
            expectation: "is not a URL; write it like https://example.com/v1".into(),
            is_private: text.contains('@'),
        }),
    }
}

pub(crate) fn shown(scalar: &Scalar, hide: bool) -> String {
    match (hide, scalar.style) {
        (true, _) => HIDDEN.to_owned(),
        (false, Style::Plain) if !scalar.value.is_string() => brief(&scalar.text),
        (false, _) => quote(&scalar.text),
    }
}

pub(crate) fn quote(text: &str) -> String {
    format!("{:?}", brief(text))
}

pub(crate) fn brief(text: &str) -> String {
    if text.chars().count() <= LONGEST_VALUE {
        return text.to_owned();
    }
    let mut brief: String = text.chars().take(LONGEST_VALUE).collect();
    brief.push('…');
    brief
}
