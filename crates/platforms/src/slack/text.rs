//! What Slack writes into a message's text, as people read it.

use std::collections::HashMap;

/// The most names that are looked up for one message.
const MOST_NAMES: usize = 16;

/// The names behind the ids in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Names {
    /// Of people and bots.
    pub(super) people: HashMap<String, String>,
    /// Of chats.
    pub(super) rooms: HashMap<String, String>,
}

/// The ids in a text whose names it does not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Unnamed {
    pub(super) people: Vec<String>,
    pub(super) rooms: Vec<String>,
}

/// A stretch of text.
enum Piece<'a> {
    /// As written, with entities.
    Plain(&'a str),
    /// What stood between angle brackets.
    Marked(&'a str),
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(after) = rest.strip_prefix('<')
            && let Some(end) = after.find(['>', '<'])
            && after[end..].starts_with('>')
        {
            rest = &after[end + 1..];
            return Some(Piece::Marked(&after[..end]));
        }
        let skip = usize::from(rest.starts_with('<'));
        let end = rest[skip..].find('<').map_or(rest.len(), |at| at + skip);
        let (plain, after) = rest.split_at(end);
        rest = after;
        Some(Piece::Plain(plain))
    })
}

fn labelled(mark: &str) -> (&str, &str) {
    mark.split_once('|').unwrap_or((mark, ""))
}

/// Whether somebody is mentioned.
pub(super) fn mentions(text: &str, user: &str) -> bool {
    pieces(text).any(|piece| is_mention(&piece, user))
}

fn is_mention(piece: &Piece<'_>, user: &str) -> bool {
    matches!(piece, Piece::Marked(mark) if labelled(mark).0.strip_prefix('@') == Some(user))
}

/// What has to be looked up before a text can be read.
pub(super) fn unnamed(text: &str) -> Unnamed {
    let mut unnamed = Unnamed::default();
    for piece in pieces(text) {
        let Piece::Marked(mark) = piece else { continue };
        let (id, label) = labelled(mark);
        if let Some(user) = id.strip_prefix('@') {
            keep(&mut unnamed.people, user);
        } else if let Some(room) = id.strip_prefix('#')
            && label.is_empty()
        {
            keep(&mut unnamed.rooms, room);
        }
    }
    unnamed
}

fn keep(ids: &mut Vec<String>, id: &str) {
    if ids.len() < MOST_NAMES && !id.is_empty() && !ids.iter().any(|known| known == id) {
        ids.push(id.to_owned());
    }
}

/// The text without `user`'s mention at its beginning and its end, where it only says whom it is for.
pub(super) fn unaddressed<'a>(text: &'a str, user: &str) -> &'a str {
    let mut text = text.trim();
    loop {
        let mut ends = text.match_indices('>').map(|(at, _)| at + 1);
        let leading = ends.next().filter(|end| is_only_mention(&text[..*end], user));
        if let Some(end) = leading {
            text = text[end..].trim_start_matches([':', ',', ' ', '\u{a0}', '\n', '\t']);
            continue;
        }
        let trailing = text.rfind('<').filter(|start| is_only_mention(&text[*start..], user));
        match trailing {
            Some(start) => text = text[..start].trim_end(),
            None => return text,
        }
    }
}

fn is_only_mention(text: &str, user: &str) -> bool {
    let mut pieces = pieces(text);
    pieces.next().is_some_and(|piece| is_mention(&piece, user)) && pieces.next().is_none()
}

/// The text with names for ids, addresses for links, and characters for entities.
pub(super) fn readable(text: &str, names: &Names) -> String {
    let mut readable = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Plain(plain) => readable.push_str(&unescaped(plain)),
            Piece::Marked(mark) => readable.push_str(&marked(mark, names)),
        }
    }
    readable
}

fn marked(mark: &str, names: &Names) -> String {
    let (what, label) = labelled(mark);
    let label = unescaped(label);
    let named = |sign: char, id: &str, names: &HashMap<String, String>| {
        let name = names.get(id).map(String::as_str).filter(|name| !name.is_empty());
        let label = Some(label.as_str()).filter(|label| !label.is_empty());
        format!("{sign}{}", name.or(label).unwrap_or(id))
    };
    if let Some(user) = what.strip_prefix('@') {
        return named('@', user, &names.people);
    }
    if let Some(room) = what.strip_prefix('#') {
        return named('#', room, &names.rooms);
    }
    if let Some(special) = what.strip_prefix('!') {
        return match special.split_once('^') {
            Some(_) if !label.is_empty() => label,
            Some((_, rest)) => format!("@{rest}"),
            None if label.is_empty() || label == special => format!("@{special}"),
            None => label,
        };
    }
    let address = unescaped(what);
    let shown = address.strip_prefix("mailto:").or_else(|| address.strip_prefix("tel:"));
    match label.as_str() {
        "" => shown.unwrap_or(&address).to_owned(),
        // Slack makes a link of a bare name, too: `<http://example.org|example.org>`.
        label if shown == Some(label) || is_the_same_address(label, &address) => label.to_owned(),
        label => format!("{label} ({address})"),
    }
}

fn is_the_same_address(label: &str, address: &str) -> bool {
    let bare = |text: &str| {
        let text = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        text.map(|text| text.trim_end_matches('/').to_owned())
    };
    label == address || bare(address).as_deref() == Some(label.trim_end_matches('/'))
}

/// Once, and `&amp;` last: what was written as `&amp;lt;` says `&lt;`.
fn unescaped(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let of = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(id, name)| ((*id).to_owned(), (*name).to_owned())).collect()
        };
        Names {
            people: of(&[("U1", "Alice"), ("UBOT", "talaria")]),
            rooms: of(&[("C9", "secret-plans")]),
        }
    }

    #[test]
    fn marks_become_what_people_see() {
        for (text, expected) in [
            ("good *morning* ☀", "good *morning* ☀"),
            ("hi <@U1>!", "hi @Alice!"),
            ("hi <@U1|old name>", "hi @Alice"),
            ("hi <@U2|bob>", "hi @bob"),
            ("hi <@U3>", "hi @U3"),
            ("in <#C1|general>", "in #general"),
            ("in <#C9|>", "in #secret-plans"),
            ("<!here> <!channel> <!everyone|everyone>", "@here @channel @everyone"),
            ("<!subteam^S1|@ops> look", "@ops look"),
            ("<!subteam^S1> look", "@S1 look"),
            ("<!date^1392734382^{date}|Feb 18, 2014>", "Feb 18, 2014"),
            ("<https://google.com>", "https://google.com"),
            ("<https://x.y/a?b=1&amp;c=2|label>", "label (https://x.y/a?b=1&c=2)"),
            ("<http://example.org|example.org>", "example.org"),
            ("<mailto:a@b.c|a@b.c> <mailto:d@e.f>", "a@b.c d@e.f"),
            ("1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"),
            ("&amp;lt;", "&lt;"),
            ("`&lt;b&gt;`", "`<b>`"),
            ("a < b", "a < b"),
            ("<", "<"),
            ("<<@U1>", "<@Alice"),
            ("<>", ""),
            ("", ""),
        ] {
            assert_eq!(readable(text, &names()), expected, "{text:?}");
        }
    }

    #[test]
    fn our_mention_is_taken_out_where_it_only_says_whom_a_text_is_for() {
        for (text, expected) in [
            ("<@UBOT> hello", "hello"),
            ("<@UBOT>: hello", "hello"),
            ("  <@UBOT|talaria>, <@UBOT> hello ", "hello"),
            ("hello <@UBOT>", "hello"),
            ("<@UBOT>", ""),
            ("<@UBOT> !stop", "!stop"),
            ("ask <@UBOT> about it", "ask <@UBOT> about it"),
            ("<@U1> hello", "<@U1> hello"),
            ("<@UBOT2> hello", "<@UBOT2> hello"),
            ("<https://a.b> <@UBOT>", "<https://a.b>"),
        ] {
            assert_eq!(unaddressed(text, "UBOT"), expected, "{text:?}");
        }
        assert!(mentions("ask <@UBOT> about it", "UBOT"));
        assert!(mentions("ask <@UBOT|x> about it", "UBOT"));
        assert!(!mentions("ask <@UBOT2> about it", "UBOT"));
        assert!(!mentions("&lt;@UBOT&gt;", "UBOT"), "somebody only wrote it");
    }

    #[test]
    fn what_has_to_be_looked_up_is_found_once() {
        let found = unnamed("<@U1> <@U1> <@U2|b> <#C1|general> <#C2|> <#C3> <https://x>");
        assert_eq!(found.people, ["U1", "U2"]);
        assert_eq!(found.rooms, ["C2", "C3"]);
    }
}
