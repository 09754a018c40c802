//! What people wrote, as it reads: mentions by name, our own left out.

use talaria_clock::rfc3339;
use talaria_model::Timestamp;

use super::api::User;
use super::places::Places;
use super::snowflake::Snowflake;

/// Who and what can be mentioned in a text.
pub(crate) struct Names<'a> {
    /// Us.
    pub(crate) us: Snowflake,
    /// The guild, where there is one.
    pub(crate) guild: Option<Snowflake>,
    /// The people that Discord says are mentioned.
    pub(crate) people: &'a [User],
    pub(crate) places: &'a Places,
}

/// What can be written between angle brackets.
#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Person(Snowflake),
    Role(Snowflake),
    Channel(Snowflake),
    Command(&'a str),
    Emoji(&'a str),
    Time(i64),
}

/// The text as it reads.
pub(crate) fn readable(content: &str, names: &Names<'_>) -> String {
    let mut text = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(at) = rest.find('<') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some((token, length)) = token(rest) else {
            text.push('<');
            rest = &rest[1..];
            continue;
        };
        let raw = &rest[..length];
        rest = &rest[length..];
        match token {
            Token::Person(id) if id == names.us => without_us(&text, &mut rest),
            Token::Role(id) if names.places.our_role(names.guild) == Some(id) => {
                without_us(&text, &mut rest);
            }
            Token::Person(id) => match names.people.iter().find(|user| user.id == id) {
                Some(user) => text.push_str(&format!("@{}", display(user))),
                None => text.push_str(raw),
            },
            Token::Role(id) => match names.places.role_name(names.guild, id) {
                Some(name) => text.push_str(&format!("@{}", name.trim_start_matches('@'))),
                None => text.push_str(raw),
            },
            Token::Channel(id) => match names.places.find(id) {
                Some(channel) => text.push_str(&format!("#{}", channel.name)),
                None => text.push_str(raw),
            },
            Token::Command(name) => text.push_str(&format!("/{name}")),
            Token::Emoji(name) => text.push_str(&format!(":{name}:")),
            Token::Time(seconds) => {
                let at = Timestamp::from_millis(seconds.saturating_mul(1000));
                text.push_str(&rfc3339(at));
            }
        }
    }
    text.push_str(rest);
    text.trim().to_owned()
}

/// Whether the text itself mentions somebody.
pub(crate) fn mentions(content: &str, who: Snowflake) -> bool {
    content
        .match_indices('<')
        .any(|(at, _)| matches!(token(&content[at..]), Some((Token::Person(id), _)) if id == who))
}

/// What a mentioned person is called.
fn display(user: &User) -> String {
    let nick = user.member.as_ref().and_then(|member| member.nick.clone());
    nick.unwrap_or_else(|| user.name())
}

/// One space is enough where our name was.
fn without_us(text: &str, rest: &mut &str) {
    if text.is_empty() || text.ends_with([' ', '\n']) {
        *rest = rest.strip_prefix(' ').unwrap_or(rest);
    }
}

/// What a text begins with, if that is more than a bracket, and how long it is.
fn token(text: &str) -> Option<(Token<'_>, usize)> {
    let end = text.find('>')?;
    let inner = &text[1..end];
    // Nothing that Discord writes is longer.
    if inner.len() > 200 {
        return None;
    }
    let token = if let Some(id) = inner.strip_prefix("@&") {
        Token::Role(Snowflake::parse(id)?)
    } else if let Some(id) = inner.strip_prefix("@!").or_else(|| inner.strip_prefix('@')) {
        Token::Person(Snowflake::parse(id)?)
    } else if let Some(id) = inner.strip_prefix('#') {
        Token::Channel(Snowflake::parse(id)?)
    } else if let Some(command) = inner.strip_prefix('/') {
        let (name, id) = command.rsplit_once(':')?;
        Snowflake::parse(id)?;
        Token::Command(name)
    } else if let Some(emoji) = inner.strip_prefix("a:").or_else(|| inner.strip_prefix(':')) {
        let (name, id) = emoji.split_once(':')?;
        Snowflake::parse(id)?;
        Token::Emoji(name)
    } else {
        let time = inner.strip_prefix("t:")?;
        Token::Time(time.split(':').next()?.parse().ok()?)
    };
    Some((token, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &str, expected: &str) {
        let places = Places::new(&[]);
        let guild = serde_json::from_value(serde_json::json!({
            "id": "1", "name": "Home",
            "channels": [{ "id": "20", "type": 0, "name": "general" }],
            "roles": [
                { "id": "30", "name": "cooks" },
                { "id": "31", "name": "Talaria", "tags": { "bot_id": "7" } },
            ],
        }));
        places.guild(guild.unwrap(), Snowflake(7));
        let bob = User { id: Snowflake(8), global_name: Some("Bob".into()), ..User::default() };
        let names =
            Names { us: Snowflake(7), guild: Some(Snowflake(1)), people: &[bob], places: &places };
        assert_eq!(readable(content, &names), expected);
    }

    #[test]
    fn a_text_reads_as_people_see_it() {
        check("<@7> hello", "hello");
        check("hello <@!7>, how are you?", "hello , how are you?");
        check("<@&31> hello", "hello");
        check("ask <@8> and <@9>", "ask @Bob and <@9>");
        check("<@&30> in <#20>, not <#21>", "@cooks in #general, not <#21>");
        check("use </model set:55>", "use /model set");
        check("<:party:12> <a:spin:13>", ":party: :spin:");
        check("at <t:1462015105:R>", "at 2016-04-30T11:18:25.000Z");
        check("1 < 2 <b> <@> <@x> <t:> <", "1 < 2 <b> <@> <@x> <t:> <");
        check("<@7>", "");
        check("<@7>\n```\n  kept\n```", "```\n  kept\n```");
    }

    #[test]
    fn a_mention_in_the_text_is_found() {
        assert!(mentions("hi <@!7>", Snowflake(7)));
        assert!(!mentions("hi <@77> @everyone <@&7>", Snowflake(7)));
    }
}
