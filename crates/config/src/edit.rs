//! Changes to `config.yaml` that leave everything else in it as it was written: comments, order, spelling.
//!
//! A change is made to the text and then read back. One that would mean anything else than what was
//! asked for is not made: the person is told what to write instead.

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
    "config.yaml cannot be changed without changing more of it; write this into it yourself:\n\n{lines}"
)]
pub struct Unwritable {
    /// What should be in it.
    pub lines: String,
}

/// The text of `config.yaml` with a setting of an account put into it. The text is the same if the setting
/// is there already.
pub fn put_in_account(
    text: &str,
    account: &str,
    setting: &str,
    put: &Put,
) -> Result<String, Unwritable> {
    let lines = match put {
        Put::Value(value) => format!("{setting}: {}", written(value)),
        Put::Item(item) => format!("{setting}: [{}]", written(item)),
        Put::Yes => format!("{setting}: {YES}"),
    };
    let wanted = Wanted { account, setting, put, line: &lines };
    let unwritable = || Unwritable { lines: format!("accounts:\n  {account}:\n    {lines}\n") };
    let before = parse_file(text, |_| false).map_err(|_| unwritable())?;
    let mut expected = spelled(&before);
    let is_there = wanted.put_into(&mut expected).ok_or_else(unwritable)?;
    if is_there == IsThere::Already {
        return Ok(text.to_owned());
    }
    let after = wanted.write(text, &before).ok_or_else(unwritable)?;
    let read = parse_file(&after, |_| false).map_err(|_| unwritable())?;
    if spelled(&read) == expected { Ok(after) } else { Err(unwritable()) }
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
        let found = match page.children(accounts)? {
            Children::None { at, indent } => {
                page.insert(at, [format!("{account}:"), format!("  {line}")], indent);
                return Some(page.text());
            }
            Children::Some { end, indent } => match accounts.get(account) {
                Some(found) => found,
                None => {
                    page.insert(end, [format!("{account}:"), format!("  {line}")], indent);
                    return Some(page.text());
                }
            },
        };
        match (page.children(found)?, found.get(self.setting)) {
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
            Body::Map(entries) => {
                let (first, indent) = place(&entries.first()?.1)?;
                (first > line).then(|| Children::Some { end: self.end(first, indent), indent })
            }
            _ => None,
        }
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
        let once = put_in_account(text, "loft", setting, put).unwrap();
        assert_eq!(once, expected, "{text:?}");
        assert_eq!(put_in_account(&once, "loft", setting, put).unwrap(), once, "twice is once");
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
    fn what_cannot_be_changed_safely_is_left_alone() {
        for text in [
            "accounts: {loft: {a: 1}}\n",
            "accounts:\n  loft: {a: 1}\n",
            "accounts: &x\n  desk: *x\n",
            "{model: x}",
            "accounts: 7\n",
            "accounts:\n  loft:\n    nest: [a]\n",
            "model: [\n",
        ] {
            let refused = put_in_account(text, "loft", "nest", &value("twigs")).unwrap_err();
            assert_eq!(refused.lines, "accounts:\n  loft:\n    nest: twigs\n", "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_put_is_read_back(text in "\\PC{1,20}", before in 0..3usize) {
            let before = ["", "accounts:\n  desk:\n    plant: x\n", "accounts:\n  loft:\n    b: c\n"][before];
            let after = put_in_account(before, "loft", "a", &Put::Value(text.clone())).unwrap();
            let read = parse_file(&after, |_| false).ok().unwrap();
            prop_assert_eq!(&spelled(&read)["accounts"]["loft"]["a"], &Value::String(text));
        }
    }
}
