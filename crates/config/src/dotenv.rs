//! `.env`: one `NAME=value` a line.
//!
//! Values are taken as written and never expanded, so a `$` in a password stays a `$`; the process
//! environment is neither read nor changed. Messages name the line and the variable, never the value.

use std::collections::BTreeMap;

use crate::finding::{DOTENV_FILE, Finding, Place};

/// The value of a variable and the line it stands on.
pub(crate) struct Entry {
    pub(crate) value: String,
    pub(crate) line: u32,
}

/// What a file says.
#[derive(Default)]
pub(crate) struct DotEnv {
    pub(crate) entries: BTreeMap<String, Entry>,
    pub(crate) problems: Vec<Finding>,
    pub(crate) warnings: Vec<Finding>,
}

/// Reads a whole file. A line that cannot be read is a problem; the others are read nevertheless.
pub(crate) fn parse(text: &str) -> DotEnv {
    let mut read = DotEnv::default();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut line = 1;
    while !rest.is_empty() {
        let here = line;
        let (parsed, remaining) = statement(rest);
        line += rest[..rest.len() - remaining.len()].matches('\n').count() as u32;
        rest = remaining;
        match parsed {
            Ok(None) => {}
            Ok(Some((name, value, quoting))) => {
                if matches!(quoting, Quoting::Plain) && value.contains("${") {
                    let expectation = format!(
                        "{name} contains `${{`, which is kept as it is: values are not expanded"
                    );
                    read.warnings.push(finding(here, expectation));
                }
                if let Some(earlier) = read.entries.get(&name) {
                    let expectation =
                        format!("{name} is also set on line {}; this one counts", earlier.line);
                    read.warnings.push(finding(here, expectation));
                }
                read.entries.insert(name, Entry { value, line: here });
            }
            Err(expectation) => read.problems.push(finding(here, expectation)),
        }
    }
    read
}

/// The text of `.env` with a variable set in it. Everything else stays as it is written, and all of it if
/// the variable has this value already.
pub fn put_variable(text: &str, name: &str, value: &str) -> String {
    let mut statements: Vec<(&str, bool)> = Vec::new();
    let mut rest = text;
    let mut before = None;
    while !rest.is_empty() {
        let (parsed, remaining) = statement(rest.trim_start_matches('\u{feff}'));
        let written = &rest[..rest.len() - remaining.len()];
        rest = remaining;
        let is_meant = matches!(&parsed, Ok(Some((found, ..))) if found == name);
        if let Ok(Some((_, value, _))) = parsed
            && is_meant
        {
            before = Some(value);
        }
        statements.push((written, is_meant));
    }
    if before.as_deref() == Some(value) {
        return text.to_owned();
    }
    let assignment = format!("{name}={}\n", quote(value));
    // The last one counts.
    let place = statements.iter().rposition(|(_, is_meant)| *is_meant);
    let mut text = String::new();
    for (at, (written, _)) in statements.iter().enumerate() {
        text.push_str(if Some(at) == place { &assignment } else { written });
    }
    if place.is_none() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&assignment);
    }
    text
}

/// A value as it is written, with quotes where it would be read as something else without.
fn quote(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:@+=,-".contains(c);
    if value.chars().all(is_plain) {
        return value.to_owned();
    }
    if !value.contains('\'') {
        return format!("'{value}'");
    }
    let mut quoted = String::from('"');
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '$') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted + "\""
}

fn finding(line: u32, expectation: impl Into<String>) -> Finding {
    Finding {
        place: Some(Place { file: DOTENV_FILE.to_owned(), line: Some(line), column: None }),
        ..Finding::about(DOTENV_FILE, expectation)
    }
}

/// Whether `${` could have been meant as an expansion.
enum Quoting {
    Plain,
    Literal,
}

type Statement = Result<Option<(String, String, Quoting)>, String>;

/// Reads one statement, which ends with its line unless a quoted value runs over several.
fn statement(text: &str) -> (Statement, &str) {
    let (line, after) = text.split_once('\n').unwrap_or((text, ""));
    let trimmed = line.trim();
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return (Ok(None), after);
    }
    let Some(equals) = line.find('=') else {
        return (Err("the line has no `=`; write it like NAME=value".into()), after);
    };
    let name = line[..equals].trim();
    let name = name.strip_prefix("export ").unwrap_or(name).trim();
    if !is_name(name) {
        let expectation = "what stands before the `=` is not a name; \
                           write letters, digits and underscores, like NAME=value";
        return (Err(expectation.into()), after);
    }
    // The value may run over several lines, so it is looked for in all of the text.
    let value = text[equals + 1..].trim_start_matches([' ', '\t']);
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let Some(quote) = quote else {
        let plain = line[equals + 1..].trim();
        let plain = plain.split_once(" #").map_or(plain, |(before, _)| before.trim_end());
        let plain = if plain.starts_with('#') { "" } else { plain };
        return (Ok(Some((name.to_owned(), plain.to_owned(), Quoting::Plain))), after);
    };
    let Some((content, closed)) = quoted(&value[1..], quote) else {
        return (Err(format!("{name} opens a quote ({quote}) that is never closed")), after);
    };
    let (tail, after) = closed.split_once('\n').unwrap_or((closed, ""));
    let tail = tail.trim();
    if !tail.is_empty() && !tail.starts_with('#') {
        return (Err(format!("{name} has text after its closing quote ({quote})")), after);
    }
    let quoting = if quote == '\'' { Quoting::Literal } else { Quoting::Plain };
    (Ok(Some((name.to_owned(), content, quoting))), after)
}

/// The text up to the closing quote, and what follows it.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut content = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Some((content, &text[at + c.len_utf8()..])),
            '\\' if quote == '"' => match chars.next()?.1 {
                'n' => content.push('\n'),
                'r' => content.push('\r'),
                't' => content.push('\t'),
                c @ ('"' | '\\' | '$') => content.push(c),
                other => content.extend(['\\', other]),
            },
            c => content.push(c),
        }
    }
    None
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expect: &str) {
        let read = parse(text);
        let mut seen: Vec<String> = read
            .entries
            .iter()
            .map(|(name, entry)| format!("{}:{name}={:?}", entry.line, entry.value))
            .collect();
        seen.extend(read.problems.iter().map(|finding| format!("problem {finding}")));
        seen.extend(read.warnings.iter().map(|finding| format!("warning {finding}")));
        assert_eq!(seen.join("\n"), expect, "{text:?}");
    }

    #[test]
    fn values_are_what_they_look_like() {
        check("A=1", r#"1:A="1""#);
        check("\u{feff}A=1\r\nB = two \n", "1:A=\"1\"\n2:B=\"two\"");
        check("# comment\n\n  export A=x # note\n", r#"3:A="x""#);
        check("A=p#a$s", r#"1:A="p#a$s""#);
        check("A=", r#"1:A="""#);
        check("A= # nothing", r#"1:A="""#);
        check(r#"A="a # b\n\"c\"" # note"#, r#"1:A="a # b\n\"c\"""#);
        check(r"A='$a\n' ", r#"1:A="$a\\n""#);
        check("A='-----\nkey\n-----'\nB=2", "1:A=\"-----\\nkey\\n-----\"\n4:B=\"2\"");
        check("A=é=ü", r#"1:A="é=ü""#);
    }

    #[test]
    fn what_cannot_be_read_is_named_without_its_value() {
        check("canary", "problem .env:1: the line has no `=`; write it like NAME=value");
        check(
            "a-b=canary\nB=2",
            "2:B=\"2\"\nproblem .env:1: what stands before the `=` is not a name; \
             write letters, digits and underscores, like NAME=value",
        );
        check("A=\"canary", "problem .env:1: A opens a quote (\") that is never closed");
        check("A='x' canary", "problem .env:1: A has text after its closing quote (')");
        check("A=1\nA=2", "2:A=\"2\"\nwarning .env:2: A is also set on line 1; this one counts");
        check(
            "A=${HOME}/x\nB='${C}'",
            "1:A=\"${HOME}/x\"\n2:B=\"${C}\"\n\
             warning .env:1: A contains `${`, which is kept as it is: values are not expanded",
        );
    }

    #[test]
    fn a_variable_is_put_in_its_place() {
        for (before, value, after) in [
            ("", "12:ab-c", "B=12:ab-c\n"),
            ("A=1", "x", "A=1\nB=x\n"),
            ("# mine\nB=old # was\nC='3'\n", "new", "# mine\nB=new\nC='3'\n"),
            ("export B=x\n", "x", "export B=x\n"),
            ("B=1\nB='2\n2'\nA=1\n", "3", "B=1\nB=3\nA=1\n"),
            ("", "a b$c", "B='a b$c'\n"),
            ("", "it's $5", "B=\"it's \\$5\"\n"),
        ] {
            assert_eq!(put_variable(before, "B", value), after);
        }
    }

    proptest! {
        #[test]
        fn a_variable_that_is_put_is_read_back_and_the_others_stay(
            before in "([A-C]=[xé\"'# ]{0,5}\n|# note\n|\n){0,5}", value in "[^\r\u{feff}]{0,12}",
        ) {
            let others = parse(&before);
            // What cannot be read is told to the person before anything is put.
            prop_assume!(others.problems.is_empty());
            let once = put_variable(&before, "B", &value);
            let read = parse(&once);
            prop_assert!(read.problems.is_empty());
            prop_assert_eq!(&read.entries["B"].value, &value);
            prop_assert_eq!(put_variable(&once, "B", &value), once);
            for name in ["A", "C"] {
                let value = |read: &DotEnv| read.entries.get(name).map(|entry| entry.value.clone());
                prop_assert_eq!(value(&others), value(&read));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[A-C=\"'\\\\\n #$xé]{0,40}") {
            parse(&text);
        }
    }
}
