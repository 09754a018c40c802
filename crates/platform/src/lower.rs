//! Makes an act fit what a platform can do.

use talaria_model::{
    Act, Capabilities, Choice, Choices, Content, Deletes, Draft, Drafts, Edits, FileRef, Files,
    Marks, Markup, Outbound, Reactions, Reading, TextLimit, Typing, Whispers,
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
/// A text is taken apart so that every part fits once the platform has rendered it; each part is Markdown
/// that the platform reads and renders. A platform that shows no markup gets plain text, which is why
/// what comes out for such a platform is not Markdown and cannot be lowered again. Choices that cannot be
/// buttons become a numbered list, ids that do not fit on one become digests, files that cannot be sent are named in the text.
///
/// What concerns one person is for everybody where a platform cannot whisper, and where it has more than text.
///
/// Nothing comes out for an act without content, and for an act the platform does not know. That holds
/// for an edit, too: only delivery knows whether the message in question was ever seen, and posts the
/// content instead. A draft has text only, as much of it as fits: the post that follows has the rest.
/// One without text takes the draft back, and comes out as it is.
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
            vec![Act::Draft(draft(shown, can))]
        }
        Act::Delete { .. } if can.deletes != Deletes::Never => vec![act],
        Act::React { .. } if can.reactions != Reactions::Never => vec![act],
        Act::Mark { .. } if can.marks != Marks::Never => vec![act],
        Act::Typing if can.typing != Typing::Never => vec![act],
        Act::Rest if matches!(can.typing, Typing::Stays(_)) => vec![act],
        Act::Edit { .. }
        | Act::Draft(_)
        | Act::Delete { .. }
        | Act::React { .. }
        | Act::Mark { .. }
        | Act::Typing
        | Act::Rest => vec![],
    };
    std::iter::zip(numbers, acts)
        .map(|(part, act)| Outbound { id: id.with_part(part), to: to.clone(), act })
        .collect()
}

fn contents(content: Content, can: &Capabilities, most: usize) -> Vec<Content> {
    let mut text = content.text;
    let (files, refused): (Vec<_>, Vec<_>) =
        content.files.into_iter().partition(|file| match can.files {
            Files::Never => false,
            Files::UpTo(most) => file.size <= most,
        });
    if !refused.is_empty() {
        text = render::append(&text, &not_sent(&refused));
    }
    let are_buttons = match can.choices {
        Choices::Numbered => content.choices.is_empty(),
        Choices::Buttons { max, .. } => content.choices.len() <= usize::from(max),
    };
    let buttons = if are_buttons {
        content.choices.into_iter().map(|choice| pressable(choice, can.choices)).collect()
    } else {
        text = render::append(&text, &numbered(&content.choices));
        vec![]
    };

    let mut texts = texts(&text, can, most);
    if texts.is_empty() && !(files.is_empty() && buttons.is_empty()) {
        texts.push(String::new());
    }
    let (notify, privacy) = (content.notify, content.privacy);
    let is_text = files.is_empty() && buttons.is_empty();
    let whispered_to = content.whispered_to.filter(|_| is_text && can.whispers == Whispers::Shown);
    let said = |text| {
        let whispered_to = whispered_to.clone();
        Content { notify, whispered_to, privacy, ..Content::text(text) }
    };
    let mut contents: Vec<Content> = texts.into_iter().map(said).collect();
    if let Some(first) = contents.first_mut() {
        first.reply_to = content.reply_to;
    }
    if let Some(last) = contents.last_mut() {
        last.choices = buttons;
    }
    // Where messages grow by edits, files are a message of their own: an edit brings none along.
    match contents.last_mut() {
        Some(last) if can.edits == Edits::Never || last.text.is_empty() => last.files = files,
        Some(_) if !files.is_empty() => {
            contents.push(Content { notify, files, privacy, ..Content::default() });
        }
        _ => {}
    }
    contents
}

fn draft(draft: Draft, can: &Capabilities) -> Draft {
    let Draft { content, doing } = draft;
    let mut parts = parts(&content.text, can.text, can);
    let text = match (parts.next(), parts.next()) {
        (Some(whole), None) => whole,
        (Some(first), Some(_)) => shortened(&content.text, can).unwrap_or(first),
        (None, _) if doing.is_some() => String::new(),
        (None, _) => return Draft::default(),
    };
    let text = readable(text, can.markup);
    let Content { reply_to, privacy, .. } = content;
    Draft { content: Content { reply_to, privacy, ..Content::text(text) }, doing }
}

/// The beginning of a text with a sign that it goes on, where both fit.
fn shortened(text: &str, can: &Capabilities) -> Option<String> {
    let taken = render::length("\n\n", can.text.unit) + render::length(SHORTENED, can.text.unit);
    let taken = u32::try_from(taken).unwrap_or(u32::MAX);
    let smaller = TextLimit { max: can.text.max.saturating_sub(taken), ..can.text };
    let first = parts(text, smaller, can).next()?;
    let last_line = first.rsplit('\n').next().unwrap_or_default().trim_start_matches([' ', '>']);
    // Behind a closing fence the sign would keep the fence from closing anything.
    let shortened = if last_line.starts_with("```") || last_line.starts_with("~~~") {
        format!("{first}\n{SHORTENED}")
    } else {
        first + SHORTENED
    };
    let fits = parts(&shortened, can.text, can).nth(1).is_none();
    fits.then_some(shortened)
}

/// The parts of a text, measured as people will see them.
fn parts(text: &str, limit: TextLimit, can: &Capabilities) -> render::PartsIn {
    render::parts_in(text, limit, can.markup.into())
}

/// What the platform is given: it reads Markdown, unless it shows nothing but characters.
fn readable(text: String, markup: Markup) -> String {
    match markup {
        Markup::Plain => render::plain(&render::parse(&text)),
        Markup::Markdown | Markup::Entities | Markup::Discord | Markup::Mrkdwn | Markup::Html => {
            text
        }
    }
}

fn texts(text: &str, can: &Capabilities, most: usize) -> Vec<String> {
    let mut texts: Vec<String> = parts(text, can.text, can).take(most + 1).collect();
    if texts.len() > most {
        texts.truncate(most.saturating_sub(1));
        texts.extend(parts(CUT_SHORT, can.text, can).next());
    }
    texts.into_iter().map(|text| readable(text, can.markup)).collect()
}

/// Content without anything that a platform could refuse for its form: text that is read as it is, with
/// the choices as a numbered list. The list is kept whole; a text that does not fit beside it is cut short.
pub fn plainly(content: Content, can: &Capabilities) -> Content {
    let text = match can.markup {
        // It is plain already; read as Markdown it could lose words.
        Markup::Plain => content.text,
        _ => render::plain(&render::parse(&content.text)),
    };
    let text = if content.choices.is_empty() {
        text
    } else {
        let list = render::plain(&render::parse(&numbered(&content.choices)));
        let taken = render::length(&list, can.text.unit) + "\n\n".len();
        let room = can.text.max.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX));
        let text = as_much_as_fits(&text, TextLimit { max: room, ..can.text });
        format!("{text}\n\n{list}").trim_start().to_owned()
    };
    Content { text, reading: Reading::AsItIs, choices: Vec::new(), ..content }
}

fn as_much_as_fits(text: &str, limit: TextLimit) -> String {
    let most = limit.max as usize;
    if render::length(text, limit.unit) <= most {
        return text.to_owned();
    }
    let mut left = most.saturating_sub(render::length(SHORTENED, limit.unit));
    let fitting = text.chars().take_while(|character| {
        let taken = render::length(character.encode_utf8(&mut [0; 4]), limit.unit);
        let fits = taken <= left;
        left = left.saturating_sub(taken);
        fits
    });
    format!("{}{SHORTENED}", fitting.collect::<String>().trim_end())
}

/// A choice whose id fits on a button.
fn pressable(choice: Choice, choices: Choices) -> Choice {
    match choices {
        Choices::Buttons { id, .. } if choice.id.as_str().len() > usize::from(id) => {
            Choice { id: choice.id.digest(), ..choice }
        }
        Choices::Buttons { .. } | Choices::Numbered => choice,
    }
}

fn numbered(choices: &[Choice]) -> String {
    let mut list = String::new();
    for (index, choice) in choices.iter().enumerate() {
        list.push_str(&format!("{}. {}\n", index + 1, render::literal(&choice.label)));
    }
    list + "\nAnswer with a number."
}

fn not_sent(files: &[FileRef]) -> String {
    let named: Vec<String> = files
        .iter()
        .map(|file| format!("{}, {}", render::literal(&file.name), size(file.size)))
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
