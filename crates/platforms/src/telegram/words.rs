//! What a person typed, read with the entities beside it: who is named, which command it is, and where
//! its links lead.

use super::api::{Entity, User};

/// Who we are to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) id: i64,
    /// Without the `@`.
    pub(super) username: Option<String>,
}

impl Names {
    fn has(&self, username: &str) -> bool {
        self.username.as_deref().is_some_and(|ours| ours.eq_ignore_ascii_case(username))
    }

    pub(super) fn is(&self, user: &User) -> bool {
        user.id == self.id
    }
}

/// A text as people read it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) text: String,
    /// Whether it names us.
    pub(super) names_us: bool,
    /// Whether it names another bot.
    pub(super) names_another_bot: bool,
    pub(super) command: Command,
}

/// Whether a text is a command, and whose.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// It is none.
    #[default]
    No,
    /// It names nobody.
    Anybodys,
    /// It names us.
    Ours,
    /// It names another bot.
    AnotherBots,
}

/// A piece of the text that reads otherwise than it was written.
struct Change {
    from: usize,
    to: usize,
    with: String,
}

/// Reads a text. Our own name is taken out of it, a command loses our name, and a link shows where it
/// leads. An entity that does not fit the text is not there.
pub(super) fn read(text: &str, entities: &[Entity], us: &Names) -> Words {
    let mut words = Words::default();
    let mut changes = Vec::new();
    for entity in entities {
        let Some((from, to)) = bytes_of(text, entity) else { continue };
        let written = &text[from..to];
        match entity.kind.as_str() {
            "mention" if us.has(written.trim_start_matches('@')) => {
                words.names_us = true;
                changes.push(Change { from, to: behind_name(text, to), with: String::new() });
            }
            "text_mention" if entity.user.as_ref().is_some_and(|user| us.is(user)) => {
                words.names_us = true;
                changes.push(Change { from, to: behind_name(text, to), with: String::new() });
            }
            // Names of bots end like that, and nobody else's may.
            "mention" if written.to_lowercase().ends_with("bot") => words.names_another_bot = true,
            "text_mention" if entity.user.as_ref().is_some_and(|user| user.is_bot) => {
                words.names_another_bot = true;
            }
            "bot_command" => {
                let begins = text[..from].trim().is_empty();
                match written.split_once('@') {
                    Some((command, bot)) if us.has(bot) => {
                        words.names_us = true;
                        changes.push(Change { from, to, with: command.to_owned() });
                        if begins {
                            words.command = Command::Ours;
                        }
                    }
                    Some(_) if begins => words.command = Command::AnotherBots,
                    None if begins => words.command = Command::Anybodys,
                    _ => {}
                }
            }
            "text_link" => {
                if let Some(url) = entity.url.as_deref().filter(|url| *url != written) {
                    changes.push(Change { from: to, to, with: format!(" ({url})") });
                }
            }
            _ => {}
        }
    }
    changes.sort_by_key(|change| change.from);
    let mut at = 0;
    for Change { from, to, with } in changes {
        if from < at {
            continue;
        }
        words.text.push_str(&text[at..from]);
        words.text.push_str(&with);
        at = to;
    }
    words.text.push_str(&text[at..]);
    if words.names_us {
        words.text = words.text.trim().to_owned();
    }
    words
}

/// Where an entity begins and ends in the text, which counts UTF-16 units.
fn bytes_of(text: &str, entity: &Entity) -> Option<(usize, usize)> {
    let end = entity.offset.checked_add(entity.length)?;
    let (mut units, mut from) = (0, None);
    for (at, c) in text.char_indices() {
        if units == entity.offset {
            from = Some(at);
        }
        if units == end {
            return from.map(|from| (from, at));
        }
        units += c.len_utf16();
    }
    if units == entity.offset {
        from = Some(text.len());
    }
    from.filter(|_| units == end).map(|from| (from, text.len()))
}

/// What sets a name off from what is said to it belongs to the name.
fn behind_name(text: &str, end: usize) -> usize {
    let rest = &text[end..];
    let rest = rest.trim_start_matches([',', ':', '-']).trim_start();
    text.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read_json(text: &str, entities: Value) -> Words {
        let us = Names { id: 42, username: Some("Tally_bot".into()) };
        let entities: Vec<Entity> = serde_json::from_value(entities).unwrap();
        read(text, &entities, &us)
    }

    fn check(text: &str, entities: Value, expected: &str, names_us: bool, command: Command) {
        let Words { text: read, names_us: named, command: given, .. } = read_json(text, entities);
        assert_eq!((read.as_str(), named, given), (expected, names_us, command), "{text}");
    }

    #[test]
    fn other_bots_are_known_by_the_end_of_their_names() {
        let mention = |length| json!([{ "type": "mention", "offset": 0, "length": length }]);
        let bot = json!([{ "type": "text_mention", "offset": 0, "length": 3,
            "user": { "id": 7, "is_bot": true } }]);
        for (text, entities, expected) in [
            ("@Other_Bot hi", mention(10), true),
            ("@tally_bot hi", mention(10), false),
            ("@bob hi", mention(4), false),
            ("Bob what now", bot, true),
        ] {
            assert_eq!(read_json(text, entities).names_another_bot, expected, "{text}");
        }
    }

    #[test]
    fn our_name_is_taken_out_wherever_it_stands() {
        let mention = |offset| json!([{ "type": "mention", "offset": offset, "length": 10 }]);
        check("@tally_bot: hello", mention(0), "hello", true, Command::No);
        check("😀 @Tally_Bot, hello", mention(3), "😀 hello", true, Command::No);
        check("hello @tally_bot", mention(6), "hello", true, Command::No);
        check("hello @other_bot", mention(6), "hello @other_bot", false, Command::No);
        let named =
            json!([{ "type": "text_mention", "offset": 0, "length": 5, "user": { "id": 42 } }]);
        check("Tally what now", named, "what now", true, Command::No);
        let other =
            json!([{ "type": "text_mention", "offset": 0, "length": 3, "user": { "id": 7 } }]);
        check("Bob what now", other, "Bob what now", false, Command::No);
    }

    #[test]
    fn a_command_is_ours_when_it_names_us() {
        let command = |length| json!([{ "type": "bot_command", "offset": 0, "length": length }]);
        check("/new", command(4), "/new", false, Command::Anybodys);
        check("/new@tally_bot now", command(14), "/new now", true, Command::Ours);
        check("/new@other_bot", command(14), "/new@other_bot", false, Command::AnotherBots);
        let later = json!([{ "type": "bot_command", "offset": 4, "length": 4 }]);
        check("say /new", later, "say /new", false, Command::No);
    }

    #[test]
    fn a_link_shows_where_it_leads() {
        let link =
            json!([{ "type": "text_link", "offset": 4, "length": 4, "url": "https://a.b/" }]);
        check("see here now", link, "see here (https://a.b/) now", false, Command::No);
    }

    #[test]
    fn an_entity_that_does_not_fit_is_not_there() {
        for (offset, length) in [(1, 1), (0, 1), (0, 900), (7, 1), (usize::MAX, 2)] {
            let mention = json!([{ "type": "mention", "offset": offset, "length": length }]);
            check("😀@x", mention, "😀@x", false, Command::No);
        }
    }
}
