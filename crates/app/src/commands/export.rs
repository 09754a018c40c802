//! `talaria sessions export`: a whole conversation, as it comes out of the store.

use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::path::Path;

use futures::{Stream, StreamExt};
use talaria_admin::api::{Detail, Entry, Exported};
use talaria_machine::create_for_us;

use crate::cli::Format;
use crate::exit::Halt;
use crate::plain::{plain_json, plain_lines};

/// Writes what comes, and keeps no more than a line of it in memory.
pub(super) async fn write(
    lines: impl Stream<Item = Result<Exported, Halt>>,
    format: Format,
    path: Option<&Path>,
) -> Result<u64, Halt> {
    let mut out: Box<dyn Write> = match path {
        None => Box::new(std::io::stdout().lock()),
        Some(path) => Box::new(BufWriter::new(create_for_us(path).map_err(|error| {
            Halt::failed(format_args!("cannot write {}: {error}", path.display()))
                .hint("name a file that is not there yet")
        })?)),
    };
    // A file holds what was said as it was said; a terminal would obey it.
    let is_seen = path.is_none() && std::io::stdout().is_terminal();
    let mut entries = 0;
    let mut lines = std::pin::pin!(lines);
    while let Some(line) = lines.next().await {
        let text = match line? {
            Exported::Problem(problem) => return Err(Halt::failed(problem)),
            line => {
                entries += u64::from(matches!(line, Exported::Entry(_)));
                match format {
                    Format::Jsonl => {
                        let text = serde_json::to_string(&line).map_err(Halt::failed)?;
                        plain_json(&text).into_owned() + "\n"
                    }
                    Format::Markdown if is_seen => plain_lines(&markdown(&line)).into_owned(),
                    Format::Markdown => markdown(&line),
                }
            }
        };
        match out.write_all(text.as_bytes()) {
            // A reader that has seen enough is no failure.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(entries),
            written => written.map_err(unwritten)?,
        }
    }
    out.flush().map_err(unwritten)?;
    Ok(entries)
}

fn unwritten(error: std::io::Error) -> Halt {
    Halt::failed(format_args!("cannot write all of it: {error}"))
}

fn markdown(line: &Exported) -> String {
    match line {
        Exported::Session(detail) => heading(detail),
        Exported::Entry(entry) => entry_in_markdown(entry),
        Exported::Problem(problem) => format!("\n*{problem}*\n"),
    }
}

fn heading(detail: &Detail) -> String {
    let session = &detail.session;
    let title = if session.title.is_empty() { &session.id } else { &session.title };
    format!(
        "# {title}\n\n- id: `{}`\n- chat: `{}`\n- begun: {}\n- last: {}\n- turns: {}\n- tokens: {} in, {} out\n- cost: {}\n",
        session.id,
        session.key,
        detail.begun,
        session.updated,
        session.turns,
        session.used.input + session.used.cache_read + session.used.cache_write,
        session.used.output,
        session.used.cost,
    )
}

fn entry_in_markdown(entry: &Entry) -> String {
    let who = entry.name.as_deref().unwrap_or(&entry.who);
    let remark = match (entry.kind.as_str(), &entry.taken_back) {
        (_, Some(at)) => format!(" (taken back {at})"),
        ("interrupted", None) => " (interrupted before it said anything)".to_owned(),
        ("summary", None) => " (summary of what was said before)".to_owned(),
        _ => String::new(),
    };
    let mut text = format!("\n## {who}, {}{remark}\n", entry.at);
    match entry.kind.as_str() {
        // What a tool returns may be anything, and would be taken for part of the page.
        "returned" => text.push_str(&fenced(&entry.text)),
        _ if !entry.text.is_empty() => {
            text.push('\n');
            text.push_str(entry.text.trim_end());
            text.push('\n');
        }
        _ => {}
    }
    for call in &entry.calls {
        text.push_str(&format!("\n*calls {}*\n{}", call.tool, fenced(&call.arguments)));
    }
    for file in &entry.files {
        text.push_str(&format!("\n📎 {file}\n"));
    }
    text
}

fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("\n{fence}\n{}\n{fence}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_admin::api::Call;

    #[test]
    fn an_entry_reads_well_and_cannot_break_the_page() {
        let entry = Entry {
            position: 1,
            session: "s".into(),
            at: "2026-11-15T09:30:00.000Z".into(),
            who: "agent".into(),
            name: None,
            kind: "answered".into(),
            text: "Let me look.".into(),
            files: vec!["a.png".into()],
            calls: vec![Call { tool: "search".into(), arguments: "{\"q\":\"```\"}".into() }],
            taken_back: None,
        };
        assert_eq!(
            entry_in_markdown(&entry),
            "\n## agent, 2026-11-15T09:30:00.000Z\n\nLet me look.\n\n*calls search*\n\n````\n{\"q\":\"```\"}\n````\n\n📎 a.png\n"
        );
        let (kind, text) = ("interrupted".into(), String::new());
        let silent = Entry { kind, text, files: Vec::new(), calls: Vec::new(), ..entry };
        assert_eq!(
            entry_in_markdown(&silent),
            "\n## agent, 2026-11-15T09:30:00.000Z (interrupted before it said anything)\n"
        );
    }
}
