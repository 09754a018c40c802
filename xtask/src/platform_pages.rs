//! A page for each platform and one that compares them, made from what the platforms declare.

use std::time::Duration;

use talaria_model::{
    Bucket, Capabilities, ChatKind, Choices, Deletes, Drafts, Edits, Files, Idempotency, Ids,
    Marks, Markup, Reactions, TextLimit, Typing, Unit, Whispers,
};
use talaria_platform::{Identity, Need, Registration, Spec, Startup};

/// The folder of the pages.
pub(crate) const FOLDER: &str = "docs/platforms";

/// The page of one platform: its guide, then everything that is derived.
pub(crate) fn page(registration: &Registration, all: &[Registration]) -> String {
    let spec = registration.spec;
    let mut page = format!(
        "{}\n\n---\n\nFrom here on, this page is made by `cargo xtask docs` from what the platform \
         declares.\n\n## Settings\n\n",
        spec.guide.trim_end()
    );
    page.push_str(&format!(
        "Below `accounts.{0}`, or below `accounts.<name>` with `platform: {0}`. What every account has \
         besides is in the [reference](../reference/config.md).\n\n",
        spec.name
    ));
    page.push_str(&talaria_config::settings_table(all, spec.name));
    if !spec.asks.is_empty() {
        page.push_str("\n## Setting it up\n\n");
        page.push_str(&format!(
            "`talaria setup {}` asks for these. They can also be given as flags, or as variables in the \
             environment or in `.env`.\n\n| question | flag | variable |\n|---|---|---|\n",
            spec.name
        ));
        for ask in spec.asks {
            let flag = ask.setting.replace('_', "-");
            let only = if ask.need == Need::OnRequest { " (not asked)" } else { "" };
            let (question, variable) = (cell(&format!("{}{only}", ask.question)), ask.variable);
            page.push_str(&format!("| {question} | `--{flag}` | `{variable}` |\n"));
        }
        if spec.identity == Identity::Anyone {
            let variable = spec.name.to_uppercase();
            page.push_str(&format!(
                "| Who is heard: ids, separated by commas | `--allow` | `{variable}_ALLOWED_USERS` |\n\
                 | Whether everybody is heard | `--allow-everyone` | `{variable}_ALLOW_ALL_USERS` |\n"
            ));
        }
    }
    page.push_str("\n## What it can do\n\n| | |\n|---|---|\n");
    for (what, how) in abilities(&spec.capabilities) {
        page.push_str(&format!("| {what} | {how} |\n"));
    }
    page.push_str("\nSettings can narrow or widen this.");
    page.push_str(&in_chats(registration));
    page.push_str("\n\n## What the agent is told\n\n");
    page.push_str(spec.note.unwrap_or("Only what it can do here."));
    page.push_str(match spec.ids {
        Ids::Needed => "\n\nIds of people are told as they are, even with `privacy.redact_pii`.\n",
        Ids::Hideable => "\n\nIds of people are hidden with `privacy.redact_pii`.\n",
    });
    page
}

/// What differs from chat to chat with the usual settings.
fn in_chats(registration: &Registration) -> String {
    let every = ChatKind::ALL.map(|chat| abilities(&(registration.usually)(chat)));
    let differ = |row: &usize| every.iter().any(|of_chat| of_chat[*row] != every[0][*row]);
    let rows: Vec<usize> = (0..every[0].len()).filter(differ).collect();
    if rows.is_empty() {
        return " It is the same in every kind of chat.".to_owned();
    }
    let mut table =
        String::from(" With the usual settings, these differ from chat to chat:\n\n| |");
    ChatKind::ALL.iter().for_each(|chat| table.push_str(&format!(" {} |", chat_name(*chat))));
    table.push_str("\n|---|");
    ChatKind::ALL.iter().for_each(|_| table.push_str("---|"));
    for row in rows {
        table.push_str(&format!("\n| {} |", every[0][row].0));
        every.iter().for_each(|of_chat| table.push_str(&format!(" {} |", of_chat[row].1)));
    }
    table
}

fn chat_name(chat: ChatKind) -> &'static str {
    match chat {
        ChatKind::Dm => "direct",
        ChatKind::Group => "group",
        ChatKind::Channel => "channel",
        ChatKind::Thread => "thread",
        ChatKind::Forum => "forum",
    }
}

/// All platforms side by side.
pub(crate) fn overview(all: &[Registration]) -> String {
    let mut page = String::from(
        "# Platforms\n\nMade by `cargo xtask docs` from what each platform declares. Every page has how \
         to set the platform up, its settings and its limits.\n\n| platform | | how it begins |\n\
         |---|---|---|\n",
    );
    for Spec { name, label, about, startup, asks, .. } in all.iter().map(|known| known.spec) {
        let begins = match (startup, asks.is_empty()) {
            (Startup::Always, _) => "is always there".to_owned(),
            (Startup::Configured, true) => format!("`accounts.{name}` in `config.yaml`"),
            (Startup::Configured, false) => format!("`talaria setup {name}`"),
        };
        page.push_str(&format!("| [{label}]({name}.md) | {about} | {begins} |\n"));
    }
    page.push_str("\n## What they can do\n\n| |");
    all.iter().for_each(|known| page.push_str(&format!(" {} |", known.spec.label)));
    page.push_str("\n|---|");
    all.iter().for_each(|_| page.push_str("---|"));
    page.push('\n');
    let columns: Vec<_> = all.iter().map(|known| abilities(&known.spec.capabilities)).collect();
    for row in 0..columns.first().map_or(0, Vec::len) {
        page.push_str(&format!("| {} |", columns[0][row].0));
        columns.iter().for_each(|column| page.push_str(&format!(" {} |", column[row].1)));
        page.push('\n');
    }
    page
}

fn abilities(can: &Capabilities) -> Vec<(&'static str, String)> {
    let Capabilities {
        text: TextLimit { max, unit },
        markup,
        edits,
        drafts,
        deletes,
        choices,
        reactions,
        marks,
        whispers,
        pace,
        typing,
        files,
        reply_within,
        idempotency,
    } = *can;
    let unit = match unit {
        Unit::Bytes => "bytes",
        Unit::Utf16 => "UTF-16 units",
        Unit::Chars => "characters",
    };
    let markup = match markup {
        Markup::Plain => "none",
        Markup::Markdown => "Markdown",
        Markup::Entities => "entities beside the text",
        Markup::Discord => "Discord's Markdown",
        Markup::Mrkdwn => "mrkdwn",
        Markup::Html => "HTML",
    };
    let yes_no = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let rate = |bucket: Option<Bucket>| {
        let words = |it: Bucket| format!("{} at once, then one in {}", it.burst, time(it.every));
        bucket.map_or("no limit".to_owned(), words)
    };
    vec![
        ("one message", format!("{max} {unit}")),
        ("formatting", markup.to_owned()),
        (
            "edits",
            match edits {
                Edits::Never => "no".to_owned(),
                Edits::Every(every) => format!("one in {}", time(every)),
            },
        ),
        (
            "answers that grow without being messages",
            match drafts {
                Drafts::Never => "no".to_owned(),
                Drafts::Every(every) => format!("one in {}", time(every)),
            },
        ),
        ("taking messages back", yes_no(deletes == Deletes::Anytime)),
        (
            "choices",
            match choices {
                Choices::Numbered => "a numbered list".to_owned(),
                Choices::Buttons { max, .. } => format!("up to {max} buttons"),
            },
        ),
        ("reactions", yes_no(reactions == Reactions::Emoji)),
        ("marks on messages that are worked on", yes_no(marks == Marks::Shown)),
        ("notices that only one person reads", yes_no(whispers == Whispers::Shown)),
        (
            "typing",
            match typing {
                Typing::Never => "no".to_owned(),
                Typing::Fades(after) => format!("fades after {}", time(after)),
                Typing::Stays(after) => format!("stays, {} at most", time(after)),
            },
        ),
        (
            "files",
            match files {
                Files::Never => "no".to_owned(),
                Files::UpTo(bytes) => format!("up to {} MiB", bytes / (1024 * 1024)),
            },
        ),
        (
            "answers are possible",
            reply_within.map_or("at any time".into(), |it| format!("for {}", time(it))),
        ),
        (
            "a repeat",
            match idempotency {
                Idempotency::None => "is shown twice".to_owned(),
                Idempotency::Keyed(during) => format!("is recognised for {}", time(during)),
            },
        ),
        ("what an account may send", rate(pace.account)),
        ("what it may change", rate(pace.edits)),
        ("what a chat may be sent", rate(pace.chat)),
    ]
}

fn time(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        _ if time.subsec_millis() > 0 => format!("{} s", time.as_secs_f64()),
        seconds if seconds % 86_400 == 0 => format!("{} days", seconds / 86_400),
        seconds if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_platform_has_a_page_with_all_that_it_declares() {
        let overview = overview(talaria_platforms::ALL);
        for known in talaria_platforms::ALL {
            let spec = known.spec;
            let page = page(known, talaria_platforms::ALL);
            assert!(page.starts_with("# "), "{}", spec.name);
            assert!(overview.contains(&format!("({}.md)", spec.name)), "{}", spec.name);
            for ask in spec.asks {
                assert!(page.contains(ask.variable), "{}", ask.variable);
            }
            let schema = (known.schema)().to_value();
            for name in schema["properties"].as_object().into_iter().flat_map(|all| all.keys()) {
                assert!(page.contains(&format!("| `{name}")), "{}: {name}", spec.name);
            }
        }
    }
}
