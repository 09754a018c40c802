//! Makes an act fit what a platform can do.

use talaria_model::{
    Act, Capabilities, Choice, Choices, Content, Deletes, Draft, Drafts, Edits, FileRef, Files,
    Markup, Outbound, Reactions, TextLimit, Typing,
};
use talaria_render as render;

/// The most messages one act may become. Whoever gets that many has stopped reading, and on most
/// platforms sending them takes minutes.
const MAX_PARTS: usize = 200;

/// Takes the place of what goes beyond [`MAX_PARTS`].
const CUT_SHORT: &str = "(The rest is too long to be sent here.)";

const SHORTENED: &str = "…";

/// Turns one act into the acts that a platform with these capabilities can carry out, in order.
///
/// All of them have the address and the delivery of the one they come from; their part numbers count
/// up from its number. The reply mark is on the first, files and choices are on the last. A text of
/// more than 200 parts ends in a sentence that says so.
///
/// Choices that cannot be buttons become a numbered list, files that cannot be sent are named in the
/// text. A platform that shows no Markdown gets plain text, which is why what comes out for such a
/// platform is not Markdown and cannot be lowered again.
///
/// Nothing comes out for an act without content, and for an act the platform does not know. That holds
/// for an edit, too: only delivery knows whether the message in question was ever seen, and posts the
/// content instead. A draft has text only, as much of it as fits: the post that follows has the rest.
pub fn lower(outbound: Outbound, can: &Capabilities) -> Vec<Outbound> {
    let Outbound { id, to, act } = outbound;
    let numbers = id.part..=u16::MAX;
    let most = numbers.len().min(MAX_PARTS);
    let acts = match act {
        Act::Post(content) => contents(content, can, most).into_iter().map(Act::Post).collect(),
        Act::Edit { message, content } if can.edits != Edits::Never => {
            let mut contents = contents(content, can, most).into_iter();
            let first = contents.next().map(|content| Act::Edit { message, content });
            first.into_iter().chain(contents.map(Act::Post)).collect()
        }
        Act::Draft(shown) if can.drafts != Drafts::Never => {
            draft(shown, can).into_iter().map(Act::Draft).collect()
        }
        Act::Delete { .. } if can.deletes != Deletes::Never => vec![act],
        Act::React { .. } if can.reactions != Reactions::Never => vec![act],
        Act::Typing if can.typing != Typing::Never => vec![act],
        Act::Edit { .. } | Act::Draft(_) | Act::Delete { .. } | Act::React { .. } | Act::Typing => {
            vec![]
        }
    };
    std::iter::zip(numbers, acts)
        .map(|(part, act)| Outbound { id: id.with_part(part), to: to.clone(), act })
        .collect()
}

fn contents(content: Content, can: &Capabilities, most: usize) -> Vec<Content> {
    let mut text = readable(content.text, can.markup);
    let (files, refused): (Vec<_>, Vec<_>) =
        content.files.into_iter().partition(|file| match can.files {
            Files::Never => false,
            Files::UpTo(most) => file.size <= most,
        });
    if !refused.is_empty() {
        text = with_note(&text, &not_sent(&refused, can.markup), can.markup);
    }
    let are_buttons = match can.choices {
        Choices::Numbered => false,
        Choices::Buttons { max } => content.choices.len() <= usize::from(max),
    };
    let buttons = if are_buttons {
        content.choices
    } else {
        text = with_note(&text, &numbered(&content.choices, can.markup), can.markup);
        vec![]
    };

    let mut texts = texts(&text, can.text, most);
    if texts.is_empty() && !(files.is_empty() && buttons.is_empty()) {
        texts.push(String::new());
    }
    let mut contents: Vec<Content> = texts.into_iter().map(Content::text).collect();
    if let Some(first) = contents.first_mut() {
        first.reply_to = content.reply_to;
    }
    if let Some(last) = contents.last_mut() {
        last.files = files;
        last.choices = buttons;
    }
    contents
}

fn draft(draft: Draft, can: &Capabilities) -> Option<Draft> {
    let Draft { content, doing } = draft;
    let text = readable(content.text, can.markup);
    let text = match render::parts(&text, can.text).next() {
        Some(first) if first == text => text,
        Some(first) => shortened(&text, can.text, first),
        None if doing.is_some() => String::new(),
        None => return None,
    };
    Some(Draft { content: Content { reply_to: content.reply_to, ..Content::text(text) }, doing })
}

/// The beginning of a text with a sign that it goes on; without the sign where that does not fit.
fn shortened(text: &str, limit: TextLimit, without_sign: String) -> String {
    let sign = format!("\n{SHORTENED}");
    let taken = u32::try_from(render::length(&sign, limit.unit)).unwrap_or(u32::MAX);
    let smaller = TextLimit { max: limit.max.saturating_sub(taken), ..limit };
    let first = render::parts(text, smaller).next().unwrap_or_default();
    let last_line = first.rsplit('\n').next().unwrap_or_default().trim_start_matches([' ', '>']);
    // Behind a closing fence the sign would keep the fence from closing anything.
    let shortened = if last_line.starts_with("```") || last_line.starts_with("~~~") {
        first + &sign
    } else {
        first + SHORTENED
    };
    let fits = render::length(&shortened, limit.unit) <= limit.max as usize;
    if fits { shortened } else { without_sign }
}

fn readable(text: String, markup: Markup) -> String {
    match markup {
        Markup::Plain => render::plain(&render::parse(&text)),
        Markup::Markdown => text,
    }
}

fn texts(text: &str, limit: TextLimit, most: usize) -> Vec<String> {
    let mut texts: Vec<String> = render::parts(text, limit).take(most + 1).collect();
    if texts.len() > most {
        texts.truncate(most.saturating_sub(1));
        texts.extend(render::parts(CUT_SHORT, limit).next());
    }
    texts
}

fn with_note(text: &str, note: &str, markup: Markup) -> String {
    match markup {
        _ if note.is_empty() => text.to_owned(),
        Markup::Markdown => render::append(text, note),
        Markup::Plain if text.trim().is_empty() => note.to_owned(),
        Markup::Plain => format!("{}\n\n{note}", text.trim_end()),
    }
}

fn as_written(words: &str, markup: Markup) -> String {
    match markup {
        Markup::Markdown => render::literal(words),
        Markup::Plain => render::visible(words).split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

fn numbered(choices: &[Choice], markup: Markup) -> String {
    if choices.is_empty() {
        return String::new();
    }
    let mut list = String::new();
    for (index, choice) in choices.iter().enumerate() {
        list.push_str(&format!("{}. {}\n", index + 1, as_written(&choice.label, markup)));
    }
    list + "\nAnswer with a number."
}

fn not_sent(files: &[FileRef], markup: Markup) -> String {
    let named: Vec<String> = files
        .iter()
        .map(|file| format!("{}, {}", as_written(&file.name, markup), size(file.size)))
        .collect();
    let what = if named.len() == 1 { "attachment" } else { "attachments" };
    format!("({what} not sent here: {})", named.join("; "))
}

/// A size as people say it: at most one decimal, in powers of a thousand.
fn size(bytes: u64) -> String {
    let (unit, one) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..1_000_000 => ("kB", 1_000),
        1_000_000..1_000_000_000 => ("MB", 1_000_000),
        _ => ("GB", 1_000_000_000),
    };
    let tenths = bytes / (one / 10);
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        decimal => format!("{}.{decimal} {unit}", tenths / 10),
    }
}
