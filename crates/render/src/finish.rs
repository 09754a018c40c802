//! What running text has that CommonMark does not know: spoilers, and addresses without marks.

use crate::autolink::addresses;
use crate::document::Inline;
use crate::spoiler::spoilers;

/// Running text with what only we see in it: spoilers, and addresses that were written without marks.
/// Links are left alone. Lines without words are dropped.
pub(crate) fn finished(inlines: Vec<Inline>) -> Vec<Inline> {
    if is_finished(&inlines) {
        return inlines;
    }
    Finishing { line: Line::First }.all(inlines)
}

/// Whether there certainly is nothing to do, which is so most of the time.
fn is_finished(inlines: &[Inline]) -> bool {
    let mut before = &Inline::Break;
    for inline in inlines {
        let is_fine = match inline {
            Inline::Text(text) => {
                !text.contains([':', '|']) && (*before != Inline::Break || !text.starts_with(' '))
            }
            Inline::Strong(inner)
            | Inline::Emphasis(inner)
            | Inline::Strike(inner)
            | Inline::Spoiler(inner) => is_finished(inner),
            Inline::Break => *before != Inline::Break,
            Inline::Code(_) | Inline::Math(_) | Inline::Link { .. } => true,
        };
        if !is_fine {
            return false;
        }
        before = inline;
    }
    *before != Inline::Break
}

struct Finishing {
    line: Line,
}

/// The line that is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// The first one, which has no words yet.
    First,
    /// Another one, which has none yet either.
    Next,
    Words,
}

impl Finishing {
    fn all(&mut self, inlines: Vec<Inline>) -> Vec<Inline> {
        let mut done = Vec::with_capacity(inlines.len());
        for inline in inlines {
            if inline == Inline::Break {
                if self.line == Line::Words {
                    self.line = Line::Next;
                }
                continue;
            }
            match inline {
                Inline::Text(text) => self.text(text, &mut done),
                Inline::Strong(inner) => self.form(inner, &mut done, Inline::Strong),
                Inline::Emphasis(inner) => self.form(inner, &mut done, Inline::Emphasis),
                Inline::Strike(inner) => self.form(inner, &mut done, Inline::Strike),
                Inline::Spoiler(inner) => self.form(inner, &mut done, Inline::Spoiler),
                Inline::Link { to, text } => {
                    self.begin_word(&mut done);
                    done.push(Inline::Link { to, text });
                }
                Inline::Code(_) | Inline::Math(_) | Inline::Break => {
                    self.begin_word(&mut done);
                    done.push(inline);
                }
            }
        }
        done
    }

    fn form(
        &mut self,
        inner: Vec<Inline>,
        done: &mut Vec<Inline>,
        form: impl FnOnce(Vec<Inline>) -> Inline,
    ) {
        let inner = self.all(inner);
        if !inner.is_empty() {
            done.push(form(inner));
        }
    }

    fn text(&mut self, text: String, done: &mut Vec<Inline>) {
        if self.line != Line::Words && text.trim_matches(' ').is_empty() {
            return;
        }
        self.begin_word(done);
        // Neither addresses nor spoilers.
        if !text.contains([':', '|']) {
            match done.last_mut() {
                Some(Inline::Text(before)) => before.push_str(&text),
                _ => done.push(Inline::Text(text)),
            }
            return;
        }
        let mut start = 0;
        for hidden in spoilers(&text) {
            push_linked(done, &text[start..hidden.start - 2]);
            let mut inner = Vec::new();
            push_linked(&mut inner, &text[hidden.clone()]);
            done.push(Inline::Spoiler(inner));
            start = hidden.end + 2;
        }
        push_linked(done, &text[start..]);
    }

    fn begin_word(&mut self, done: &mut Vec<Inline>) {
        if self.line == Line::Next {
            done.push(Inline::Break);
        }
        self.line = Line::Words;
    }
}

fn push_linked(into: &mut Vec<Inline>, text: &str) {
    let mut done = 0;
    for address in addresses(text) {
        push_text(into, &text[done..address.start]);
        done = address.end;
        let to = text[address].to_owned();
        into.push(Inline::Link { text: vec![Inline::Text(to.clone())], to });
    }
    push_text(into, &text[done..]);
}

/// Puts text behind running text; neighbouring texts are one.
pub(crate) fn push_text(into: &mut Vec<Inline>, text: &str) {
    match into.last_mut() {
        _ if text.is_empty() => {}
        Some(Inline::Text(before)) => before.push_str(text),
        _ => into.push(Inline::Text(text.to_owned())),
    }
}
