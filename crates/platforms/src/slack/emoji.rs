//! Emoji as Slack names them. Only those that an agent is likely to use.

/// Slack's name of an emoji; a name is taken as it is.
pub(super) fn name(emoji: &str) -> Option<&str> {
    let bare = emoji.trim().trim_matches(':');
    let is_name = !bare.is_empty()
        && bare.len() <= 100
        && bare.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_+-'".contains(c));
    if is_name {
        return Some(bare);
    }
    // Whether an emoji is to be coloured makes no difference to its name.
    let plain = bare.trim_end_matches('\u{fe0f}');
    NAMES.iter().find(|(sign, _)| *sign == plain).map(|(_, name)| *name)
}

/// From emoji-datasource, without the selectors.
const NAMES: &[(&str, &str)] = &[
    ("👀", "eyes"),
    ("✅", "white_check_mark"),
    ("❌", "x"),
    ("👍", "+1"),
    ("👎", "-1"),
    ("❤", "heart"),
    ("🎉", "tada"),
    ("🔥", "fire"),
    ("👏", "clap"),
    ("🙏", "pray"),
    ("🤔", "thinking_face"),
    ("😂", "joy"),
    ("😀", "grinning"),
    ("😄", "smile"),
    ("😊", "blush"),
    ("😍", "heart_eyes"),
    ("😢", "cry"),
    ("😭", "sob"),
    ("😮", "open_mouth"),
    ("😱", "scream"),
    ("😅", "sweat_smile"),
    ("😉", "wink"),
    ("😎", "sunglasses"),
    ("🙂", "slightly_smiling_face"),
    ("🙁", "slightly_frowning_face"),
    ("😡", "rage"),
    ("🤯", "exploding_head"),
    ("🤷", "shrug"),
    ("🤖", "robot_face"),
    ("💯", "100"),
    ("💡", "bulb"),
    ("💔", "broken_heart"),
    ("💪", "muscle"),
    ("👌", "ok_hand"),
    ("🙌", "raised_hands"),
    ("👋", "wave"),
    ("🤝", "handshake"),
    ("✨", "sparkles"),
    ("⭐", "star"),
    ("🚀", "rocket"),
    ("⏳", "hourglass_flowing_sand"),
    ("⌛", "hourglass"),
    ("⚠", "warning"),
    ("❓", "question"),
    ("❗", "exclamation"),
    ("✔", "heavy_check_mark"),
    ("🔄", "arrows_counterclockwise"),
    ("🔍", "mag"),
    ("📌", "pushpin"),
    ("📝", "memo"),
    ("📎", "paperclip"),
    ("🛑", "octagonal_sign"),
    ("🚫", "no_entry_sign"),
    ("➕", "heavy_plus_sign"),
    ("☕", "coffee"),
    ("🎂", "birthday"),
    ("🐛", "bug"),
    ("🏆", "trophy"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emoji_has_a_name_and_a_name_is_a_name() {
        for (emoji, expected) in [
            ("👀", Some("eyes")),
            ("❤️", Some("heart")),
            ("⚠", Some("warning")),
            (":party-parrot:", Some("party-parrot")),
            ("thumbsup", Some("thumbsup")),
            ("𓀀", None),
            ("", None),
            ("::", None),
            ("two words", None),
        ] {
            assert_eq!(name(emoji), expected, "{emoji:?}");
        }
    }
}
