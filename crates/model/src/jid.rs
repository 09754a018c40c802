//! Names of people on messengers that know them by phone number, and write them in several ways.
//!
//! The same person arrives as `15551234567@s.whatsapp.net`, with a device (`15551234567:12@…`), as
//! a hidden id (`98765@lid`) or as a number in E.164 (`+1 555 123-4567`). A conversation must not fall
//! apart because of that.

/// One way to write a person. `phone_of` knows the number behind a hidden id, where it was told; a
/// hidden id of which it knows nothing keeps its server, because its digits may be somebody else's
/// number. What names no person, such as a group, stays as it is.
pub fn canonical(written: &str, phone_of: impl Fn(&str) -> Option<String>) -> String {
    let written = written.trim();
    let (user, server) = match written.split_once('@') {
        Some((user, server)) => (user, server.to_ascii_lowercase()),
        None => (written, String::new()),
    };
    let user = user.split(':').next().unwrap_or(user);
    match server.as_str() {
        "lid" | "hosted.lid" => {
            phone_of(user).map_or_else(|| format!("{user}@lid"), |phone| digits(&phone))
        }
        "s.whatsapp.net" | "c.us" | "hosted" => digits(user),
        "" if is_number(written) => digits(written),
        _ => written.to_owned(),
    }
}

/// Whether a text is a phone number as people write it.
fn is_number(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | ' ' | '-' | '.' | '(' | ')'))
        && text.chars().filter(char::is_ascii_digit).count() >= 5
}

/// The digits of a number, or the text itself if there are none.
fn digits(text: &str) -> String {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if digits.is_empty() { text.to_owned() } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_person_is_the_same_person() {
        let phone_of = |lid: &str| (lid == "98765").then(|| "+15551234567".to_owned());
        for (written, expected) in [
            ("15551234567@s.whatsapp.net", "15551234567"),
            ("15551234567:12@s.whatsapp.net", "15551234567"),
            ("15551234567@c.us", "15551234567"),
            ("+1 (555) 123-4567", "15551234567"),
            ("15551234567", "15551234567"),
            ("98765@lid", "15551234567"),
            ("98765:3@lid", "15551234567"),
            ("11111@lid", "11111@lid"),
            ("11111:4@hosted.lid", "11111@lid"),
            ("11111@s.whatsapp.net", "11111"),
            ("1203@g.us", "1203@g.us"),
            ("status@broadcast", "status@broadcast"),
            ("alice", "alice"),
            ("", ""),
        ] {
            assert_eq!(canonical(written, phone_of), expected, "{written}");
        }
    }
}
