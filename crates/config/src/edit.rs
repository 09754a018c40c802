//! Changes to `config.yaml` that leave everything else in it as it was written: comments, order, spelling.
//!
//! A change is made to the text and then read back. One that would mean anything else than what was
//! asked for is not made: the person is told what to write instead.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::finding::Origin;
use crate::yaml::{Body, Node, parse_file};

/// As YAML spells it.
const YES: &str = "true";

/// What is put into an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// This value, in place of any other.
    Value(String),
    /// This item, in addition to others.
    Item(String),
    /// Yes, in place of anything else.
    Yes,
}

/// The file is written in a way that is not changed by a program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "config.yaml cannot be changed here without changing more of it, and was left as it is; see to it \
     that it says this, each setting on a line of its own:\n\n{lines}"
)]
pub struct Unwritable {
    /// What should be in it.
    pub lines: String,
}

/// The text of `config.yaml` with settings of an account put into it. The text is the same if they are
/// there already.
pub fn put_in_account(
    text: &str,
    account: &str,
    settings: &[(&str, Put)],
) -> Result<String, Unwritable> {
    let unwritable = || {
        let lines = settings.iter().map(|(setting, put)| format!("    {}\n", line(setting, put)));
        Unwritable { lines: format!("accounts:\n  {account}:\n{}", lines.collect::<String>()) }
    };
    settings.iter().try_fold(text.to_owned(), |text, (setting, put)| {
        let line = line(setting, put);
        Wanted { account, setting, put, line: &line }.put(&text).ok_or_else(unwritable)
    })
}

fn line(setting: &str, put: &Put) -> String {
    match put {
        Put::Value(value) => format!("{setting}: {}", written(value)),
        Put::Item(item) => format!("{setting}: [{}]", written(item)),
        Put::Yes => format!("{setting}: {YES}"),
    }
}

struct Wanted<'a> {
    account: &'a str,
    setting: &'a str,
    put: &'a Put,
    /// As it is written where there is none yet.
    line: &'a str,
}

#[derive(PartialEq, Eq)]
enum IsThere {
    Already,
    Now,
}

impl Wanted<'_> {
    /// The text with it; nothing if that would mean anything else.
    fn put(&self, text: &str) -> Option<String> {
        let before = parse_file(text, |_| false).ok()?;
        let mut expected = spelled(&before);
        if self.put_into(&mut expected)? == IsThere::Already {
            return Some(text.to_owned());
        }
        let after = self.write(text, &before)?;
        let read = parse_file(&after, |_| false).ok()?;
        (spelled(&read) == expected).then_some(after)
    }

    /// What the file should mean; nothing if something else stands in the way.
    fn put_into(&self, file: &mut Value) -> Option<IsThere> {
        let accounts = object(below(object(file)?, "accounts"))?;
        let account = object(below(accounts, self.account))?;
        let there = below(account, self.setting);
        match (self.put, &mut *there) {
            (Put::Value(value), Value::String(before)) if before == value => {
                return Some(IsThere::Already);
            }
            (Put::Value(value), Value::String(_) | Value::Null) => {
                *there = Value::String(value.clone());
            }
            (Put::Yes, Value::String(before)) if before == YES => return Some(IsThere::Already),
            (Put::Yes, Value::String(_) | Value::Null) => *there = Value::String(YES.to_owned()),
            (Put::Item(item), Value::Array(items))
                if items.iter().any(|it| it.as_str() == Some(item)) =>
            {
                return Some(IsThere::Already);
            }
            (Put::Item(item), Value::Array(items)) => items.push(Value::String(item.clone())),
            (Put::Item(item), Value::Null) => *there = Value::from(vec![item.clone()]),
            _ => return None,
        }
        Some(IsThere::Now)
    }

    fn write(&self, text: &str, file: &Node) -> Option<String> {
        let mut page = Page::of(text);
        let (account, line) = (self.account, self.line);
        let Some(accounts) = file.get("accounts") else {
            if !page.lines.iter().all(|line| line.trim().is_empty()) {
                page.lines.push(String::new());
            }
            let lines = ["accounts:".into(), format!("  {account}:"), format!("    {line}")];
            page.lines.extend(lines);
            return Some(page.text());
        };
        let found = match (page.children(accounts)?, accounts.get(account)) {
            (_, Some(found)) => found,
            (Children::Braces, None) => {
                page.insert_in_braces(accounts, &format!("{account}: {{{line}}}"))?;
                return Some(page.text());
            }
            (Children::None { at, indent } | Children::Some { end: at, indent }, None) => {
                page.insert(at, [format!("{account}:"), format!("  {line}")], indent);
                return Some(page.text());
            }
        };
        match (page.children(found)?, found.get(self.setting)) {
            (Children::Braces, None) => page.insert_in_braces(found, line)?,
            (Children::Braces, Some(there)) => page.change_in_braces(there, self)?,
            (Children::None { at, indent } | Children::Some { end: at, indent }, None) => {
                page.insert(at, [line.to_owned()], indent);
            }
            (_, Some(there)) => page.change(there, self)?,
        }
        Some(page.text())
    }
}

/// What is below a key, as lines.
enum Children {
    /// Nothing yet. It would begin here.
    None { at: usize, indent: usize },
    /// It ends before this line.
    Some { end: usize, indent: usize },
    /// It stands in braces behind the key.
    Braces,
}

struct Page {
    lines: Vec<String>,
}

impl Page {
    fn of(text: &str) -> Self {
        Self { lines: text.lines().map(str::to_owned).collect() }
    }

    fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }

    fn insert<const N: usize>(&mut self, at: usize, lines: [String; N], indent: usize) {
        let lines = lines.map(|line| format!("{}{line}", " ".repeat(indent)));
        self.lines.splice(at..at, lines);
    }

    /// What is below a key whose value stands in lines of its own.
    fn children(&self, parent: &Node) -> Option<Children> {
        let (line, column) = place(parent)?;
        match &parent.body {
            Body::Null => Some(Children::None { at: line + 1, indent: column + 2 }),
            Body::Map(entries) => match entries.first().map(|(_, first)| place(first)) {
                Some(first) => {
                    let (first, indent) = first?;
                    let end = || self.end(first, indent);
                    Some(if first > line {
                        Children::Some { end: end(), indent }
                    } else {
                        Children::Braces
                    })
                }
                None => Some(Children::Braces),
            },
            _ => None,
        }
    }

    /// Puts an entry behind the last one of a map that begins and ends on the line of its key.
    fn insert_in_braces(&mut self, map: &Node, entry: &str) -> Option<()> {
        let (at, column) = place(map)?;
        let line = self.lines.get_mut(at)?;
        let value = value_in(line, byte_at(line, column)?)?;
        let close = value.end - 1;
        let inside = line.get(value.start + 1..close)?.trim_end();
        let comma = if inside.is_empty() || inside.ends_with(',') { "" } else { ", " };
        let behind = value.start + 1 + inside.len();
        line.insert_str(behind, &format!("{comma}{entry}"));
        Some(())
    }

    /// Puts another value behind a key that stands in braces.
    fn change_in_braces(&mut self, there: &Node, wanted: &Wanted<'_>) -> Option<()> {
        let (at, column) = place(there)?;
        let line = self.lines.get_mut(at)?;
        let start = byte_at(line, column)?;
        let value = value_in(line, start)?;
        match (&there.body, wanted.put) {
            (Body::List(items), Put::Item(item)) => {
                let comma = if items.is_empty() { "" } else { ", " };
                line.insert_str(value.end - 1, &format!("{comma}{}", written(item)));
            }
            _ => line.replace_range(start..value.end, wanted.line),
        }
        Some(())
    }

    /// Behind the last line that belongs to a block. Comments behind it belong to what follows.
    fn end(&self, first: usize, indent: usize) -> usize {
        let mut end = first + 1;
        for (at, line) in self.lines.iter().enumerate().skip(first) {
            let content = line.trim_start();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            if line.len() - content.len() < indent {
                break;
            }
            end = at + 1;
        }
        end
    }

    fn change(&mut self, there: &Node, wanted: &Wanted<'_>) -> Option<()> {
        let (at, column) = place(there)?;
        match (&there.body, wanted.put) {
            (Body::List(items), Put::Item(item)) => {
                let last = items.last().and_then(place).filter(|(line, _)| *line > at);
                if let Some((line, column)) = last {
                    let lead: String = self.lines.get(line)?.chars().take(column).collect();
                    self.lines.insert(line + 1, format!("{lead}{}", written(item)));
                    return Some(());
                }
                let line = self.lines.get_mut(at)?;
                let close = line.rfind(']')?;
                let comma = if items.is_empty() { "" } else { ", " };
                line.insert_str(close, &format!("{comma}{}", written(item)));
            }
            _ => {
                let line = self.lines.get_mut(at)?;
                let comment = line.find(" #").map(|at| line[at..].to_owned()).unwrap_or_default();
                *line = format!("{}{}{comment}", " ".repeat(column), wanted.line);
            }
        }
        Some(())
    }
}

/// Where the character with this number begins.
fn byte_at(line: &str, column: usize) -> Option<usize> {
    line.char_indices().nth(column).map(|(at, _)| at)
}

/// Where the value stands that belongs to the key at `key`, up to the comma or bracket behind it. It is good
/// enough to be tried: what it leads to is read back.
fn value_in(line: &str, key: usize) -> Option<Range<usize>> {
    let colon = key + line.get(key..)?.find(':')? + 1;
    let rest = line.get(colon..)?;
    let start = colon + (rest.len() - rest.trim_start().len());
    let (mut depth, mut quote, mut end) = (0usize, None, start);
    for (at, c) in line.get(start..)?.char_indices().map(|(at, c)| (start + at, c)) {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') if depth == 0 => break,
            (None, '}' | ']') => {
                depth -= 1;
                if depth == 0 {
                    return Some(start..at + c.len_utf8());
                }
            }
            (None, ',') if depth == 0 => break,
            _ => {}
        }
        if !c.is_whitespace() {
            end = at + c.len_utf8();
        }
    }
    (depth == 0 && quote.is_none()).then_some(start..end)
}

/// The line and the column, counted from zero.
fn place(node: &Node) -> Option<(usize, usize)> {
    match node.origin {
        Origin::File { line, column } => Some((line as usize - 1, column as usize - 1)),
        _ => None,
    }
}

fn object(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

fn below<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Value {
    map.entry(key).or_insert(Value::Null)
}

/// The tree, with every value as it is spelled.
fn spelled(node: &Node) -> Value {
    match &node.body {
        Body::Null => Value::Null,
        Body::Scalar(scalar) => Value::String(scalar.text.clone()),
        Body::List(items) => items.iter().map(spelled).collect(),
        Body::Map(entries) => {
            entries.iter().map(|(key, node)| (key.clone(), spelled(node))).collect()
        }
    }
}

/// Text as YAML wants it: without quotes where they make no difference.
fn written(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:@-".contains(c);
    let is_word = matches!(
        text.to_lowercase().as_str(),
        "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    let is_safe = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_plain)
        && !text.ends_with(':')
        && !is_word;
    // JSON's quoting is YAML's, too.
    if is_safe { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(value: &str) -> Put {
        Put::Value(value.into())
    }

    fn item(item: &str) -> Put {
        Put::Item(item.into())
    }

    fn check(text: &str, setting: &str, put: &Put, expected: &str) {
        let put = [(setting, put.clone())];
        let once = put_in_account(text, "loft", &put).unwrap();
        assert_eq!(once, expected, "{text:?}");
        assert_eq!(put_in_account(&once, "loft", &put).unwrap(), once, "twice is once");
    }

    #[test]
    fn an_account_is_put_where_accounts_are() {
        check("", "nest", &value("a b"), "accounts:\n  loft:\n    nest: \"a b\"\n");
        check(
            "# mine\nmodel: demo # for now",
            "allow",
            &item("42"),
            "# mine\nmodel: demo # for now\n\naccounts:\n  loft:\n    allow: [42]\n",
        );
        check(
            "accounts:\nmodel: x\n",
            "a",
            &value("b"),
            "accounts:\n  loft:\n    a: b\nmodel: x\n",
        );
        check(
            "accounts:\n    desk: # mine\n        plant: fern\n\n# a model\nmodel: x\n",
            "a",
            &value("b"),
            "accounts:\n    desk: # mine\n        plant: fern\n    loft:\n      a: b\n\n# a model\nmodel: x\n",
        );
    }

    #[test]
    fn a_setting_is_put_into_an_account_and_nothing_else_changes() {
        let text = "accounts:\n  loft:\n    # who\n    allow: [1, 2] # us\n    roof: tin # or slate\n  desk:\n    plant: fern\n";
        check(text, "roof", &value("tin"), text);
        check(text, "roof", &value("slate"), &text.replace("roof: tin", "roof: slate"));
        check(text, "allow", &item("2"), text);
        check(text, "allow", &item("3"), &text.replace("[1, 2]", "[1, 2, 3]"));
        check(text, "door", &value("oak"), &text.replace("slate\n", "slate\n    door: oak\n"));
        let block = "accounts:\n  loft:\n    allow:\n      - \"1\"  # ann\n      - 2\n    x: y\n";
        check(block, "allow", &item("*"), &block.replace("- 2\n", "- 2\n      - \"*\"\n"));
        check(
            "accounts:\n  loft:\n    allow: []\n",
            "allow",
            &item("7"),
            "accounts:\n  loft:\n    allow: [7]\n",
        );
        check(
            "accounts:\n  loft:\nmodel: x\n",
            "a",
            &value("b"),
            "accounts:\n  loft:\n    a: b\nmodel: x\n",
        );
    }

    #[test]
    fn what_stands_in_braces_is_changed_there() {
        let text =
            "accounts:\n  loft: {token: \"a}, b\", allow: [1], x: 'y' } # mine\n  desk: {}\n";
        let with = |from: &str, to: &str| text.replace(from, to);
        check(text, "nest", &value("a b"), &with("'y' }", "'y', nest: \"a b\" }"));
        check(text, "allow", &item("2"), &with("[1]", "[1, 2]"));
        check(text, "allow", &item("1"), text);
        check(text, "x", &value("z"), &with("x: 'y'", "x: z"));
        check(text, "token", &value("c"), &with("\"a}, b\"", "c"));
        check("accounts: {}\n", "a", &value("b"), "accounts: {loft: {a: b}}\n");
        check("accounts:\n  loft: {}\n", "a", &Put::Yes, "accounts:\n  loft: {a: true}\n");
        check(
            "accounts: {desk: {plant: fern}, loft: {a: 1,}}\n",
            "nest",
            &value("twigs"),
            "accounts: {desk: {plant: fern}, loft: {a: 1,nest: twigs}}\n",
        );
        check(
            "accounts: {desk: {plant: fern}}\n",
            "nest",
            &value("twigs"),
            "accounts: {desk: {plant: fern}, loft: {nest: twigs}}\n",
        );
    }

    #[test]
    fn what_cannot_be_changed_safely_is_left_alone() {
        for text in [
            "accounts:\n  loft: {\n    a: 1}\n",
            "accounts:\n  loft: {a: \"}\n    \"}\n",
            "accounts: &x\n  desk: *x\n",
            "{model: x}",
            "accounts: 7\n",
            "accounts:\n  loft:\n    nest: [a]\n",
            "model: [\n",
        ] {
            let puts = [("nest", value("twigs")), ("allow", item("7"))];
            let refused = put_in_account(text, "loft", &puts).unwrap_err();
            let lines = "accounts:\n  loft:\n    nest: twigs\n    allow: [7]\n";
            assert_eq!(refused.lines, lines, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_put_is_read_back(text in "\\PC{1,20}", before in 0..4usize) {
            let before = [
                "",
                "accounts:\n  desk:\n    plant: x\n",
                "accounts:\n  loft:\n    b: c\n",
                "accounts: {loft: {a: x, b: c}}\n",
            ][before];
            let after = put_in_account(before, "loft", &[("a", value(&text))]).unwrap();
            let read = parse_file(&after, |_| false).ok().unwrap();
            prop_assert_eq!(&spelled(&read)["accounts"]["loft"]["a"], &Value::String(text));
        }
    }
}
