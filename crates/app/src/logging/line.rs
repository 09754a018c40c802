//! A line as it is written: without what turns text around or ends a line elsewhere than in ours, and not
//! without end. One of JSON stays JSON.

use std::borrow::Cow;

use serde_json::{Value, json};
use talaria_clock::{Clock, SystemClock, rfc3339};
use talaria_config::LogFormat;

use crate::plain::turns_text;

/// The longest line, in bytes. Whoever says more is cut.
const LONGEST: usize = 16 * 1024;

/// How long each text in a record may be that is too long as a whole, from generous to short.
const SHORTER: [usize; 4] = [4096, 1024, 256, 64];

const CUT: char = '…';

/// The line as it may be written.
pub(super) fn harmless(line: &str, format: LogFormat) -> Cow<'_, str> {
    let line = written_out(line);
    match format {
        _ if line.len() <= LONGEST => line,
        LogFormat::Text => {
            let mut line = line.into_owned();
            cut(&mut line, LONGEST);
            line.push('\n');
            Cow::Owned(line)
        }
        LogFormat::Json => Cow::Owned(abridged(&line)),
    }
}

/// Odd characters are written as JSON writes them, which is as readable in plain text.
fn written_out(line: &str) -> Cow<'_, str> {
    let is_odd = |c: char| matches!(c, '\u{80}'..='\u{9f}') || turns_text(c);
    if !line.contains(is_odd) {
        return Cow::Borrowed(line);
    }
    let mut written = String::with_capacity(line.len());
    for c in line.chars() {
        match is_odd(c) {
            true => written.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => written.push(c),
        }
    }
    Cow::Owned(written)
}

/// A record with the beginning of each of its texts, which says how long it was.
fn abridged(line: &str) -> String {
    let mut record: Value = serde_json::from_str(line).unwrap_or_else(|_| {
        json!({
            "timestamp": rfc3339(SystemClock.now()),
            "level": "WARN",
            "fields": { "message": line },
            "target": module_path!(),
        })
    });
    if let Some(fields) = record.get_mut("fields").and_then(Value::as_object_mut) {
        fields.insert("line_bytes".to_owned(), line.len().into());
    }
    let mut short = String::new();
    for limit in SHORTER {
        shorten(&mut record, limit);
        short = format!("{}\n", written_out(&record.to_string()));
        if short.len() <= LONGEST {
            break;
        }
    }
    short
}

fn shorten(value: &mut Value, limit: usize) {
    match value {
        Value::String(text) => cut(text, limit),
        Value::Array(values) => values.iter_mut().for_each(|value| shorten(value, limit)),
        Value::Object(values) => values.values_mut().for_each(|value| shorten(value, limit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn cut(text: &mut String, limit: usize) {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.push(CUT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_not_turned_around_and_not_endless() {
        let text = |line| harmless(line, LogFormat::Text);
        assert_eq!(text("plain é 漢\n"), "plain é 漢\n");
        assert_eq!(text("a\u{202e}b\u{2028}c\u{85}d\n"), "a\\u202eb\\u2028c\\u0085d\n");
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(text(&long), format!("{}…\n", "x".repeat(LONGEST)));
        assert!(matches!(text(&long[1..]), Cow::Borrowed(_)));
    }

    #[test]
    fn a_record_that_is_too_long_is_a_record_of_its_beginnings() {
        let check = |fields: Value, message: &str| {
            let line = json!({
                "timestamp": "2026-11-16T04:00:00.5Z",
                "level": "WARN",
                "fields": fields,
                "target": "talaria_gateway",
            });
            let line = format!("{line}\n");
            let written = harmless(&line, LogFormat::Json).into_owned();
            assert!(written.len() <= LONGEST, "{}", written.len());
            assert!(written.ends_with("}\n") && written.lines().count() == 1, "{written}");
            assert!(!written.contains('\u{202e}'), "{written}");
            let record: Value = serde_json::from_str(&written).unwrap();
            assert_eq!(record["timestamp"], "2026-11-16T04:00:00.5Z");
            assert_eq!(record["level"], "WARN");
            assert_eq!(record["target"], "talaria_gateway");
            assert_eq!(record["fields"]["tries"], 3);
            assert_eq!(record["fields"]["message"], message);
            let length = record["fields"]["line_bytes"].as_u64().unwrap();
            assert!(length > LONGEST as u64, "{length}");
        };
        let long = "said \u{202e}\"é\" ".repeat(LONGEST);
        check(json!({"message": "cannot connect", "tries": 3, "why": long}), "cannot connect");
        let mut many = json!({"message": "漢".repeat(LONGEST), "tries": 3});
        for n in 0..30 {
            many[format!("field{n}")] = long.as_str().into();
        }
        check(many, &format!("{}…", "漢".repeat(256 / 3)));
    }

    #[test]
    fn what_is_no_record_becomes_the_beginning_of_one() {
        let written = harmless(&"\"".repeat(LONGEST + 1), LogFormat::Json).into_owned();
        let record: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(record["fields"]["message"], format!("{}…", "\"".repeat(4096)));
        assert_eq!(record["level"], "WARN");
    }
}
