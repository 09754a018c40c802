//! Where two texts of `config.yaml` differ, whatever else is wrong with them.

use std::collections::{BTreeMap, BTreeSet};

use crate::yaml::{Body, Node, parse_file};

/// The paths of what two texts do not say alike. None where one of them cannot be read as YAML, so that
/// nobody knows.
pub fn apart(one: &str, other: &str) -> Option<BTreeSet<String>> {
    let (one, other) = (leaves(one)?, leaves(other)?);
    let differs = |path: &&String| one.get(*path) != other.get(*path);
    Some(one.keys().chain(other.keys()).filter(differs).cloned().collect())
}

/// Every single value of a text by its path. An empty list or section is one, too: it may be empty because
/// somebody was taken out of it.
fn leaves(text: &str) -> Option<BTreeMap<String, String>> {
    let nobody_reads_it = |_: &str| false;
    let root = parse_file(text, nobody_reads_it).ok()?;
    let mut leaves = BTreeMap::new();
    collect(&root, String::new(), &mut leaves);
    Some(leaves)
}

fn collect(node: &Node, path: String, leaves: &mut BTreeMap<String, String>) {
    let below = |name: &str| match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    };
    match &node.body {
        Body::Map(settings) if !settings.is_empty() => {
            settings.iter().for_each(|(name, node)| collect(node, below(name), leaves));
        }
        Body::List(items) if !items.is_empty() => {
            let numbered = items.iter().enumerate();
            numbered.for_each(|(at, node)| collect(node, below(&at.to_string()), leaves));
        }
        Body::Map(_) => _ = leaves.insert(path, "{}".to_owned()),
        Body::List(_) => _ = leaves.insert(path, "[]".to_owned()),
        Body::Null => _ = leaves.insert(path, String::new()),
        Body::Scalar(scalar) => _ = leaves.insert(path, format!("={}", scalar.text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(one: &str, other: &str) -> Vec<String> {
        apart(one, other).unwrap().into_iter().collect()
    }

    #[test]
    fn what_is_said_differently_is_found_on_either_side() {
        let kept = "model: demo\naccounts:\n  a: {allow: [ann, mallory], text_limit: 5}\n  b: {}\n";
        assert_eq!(paths(kept, kept), [""; 0]);
        assert_eq!(paths(kept, &format!("# a remark\n{kept}\n")), [""; 0]);
        let without = kept.replace(", mallory", "");
        assert_eq!(paths(kept, &without), ["accounts.a.allow.1"]);
        assert_eq!(paths(&without, kept), ["accounts.a.allow.1"]);
        let nobody = kept.replace("ann, mallory", "");
        assert_eq!(
            paths(kept, &nobody),
            ["accounts.a.allow", "accounts.a.allow.0", "accounts.a.allow.1"]
        );
        assert_eq!(paths(kept, &kept.replace("  b: {}\n", "")), ["accounts.b"]);
        assert_eq!(paths(kept, &kept.replace("5", "many")), ["accounts.a.text_limit"]);
        assert_eq!(paths("a: ~", "a: ''"), ["a"]);
        assert_eq!(paths("", "access: {allow: [ann]}"), ["", "access.allow.0"]);
    }

    #[test]
    fn what_is_an_alias_is_what_it_stands_for() {
        let kept = "x-friends: &friends [ann]\naccess: {allow: *friends}\n";
        let more = kept.replace("[ann]", "[ann, ben]");
        assert_eq!(paths(kept, &more), ["access.allow.1", "x-friends.1"]);
    }

    #[test]
    fn of_what_cannot_be_read_nothing_is_known() {
        assert_eq!(apart("model: [", "model: demo"), None);
        assert_eq!(apart("model: demo", "a: 1\na: 2"), None);
    }
}
