//! Running text as a row of runs, each of one form: what a dialect needs whose marks may not be nested
//! at will.

use std::borrow::Cow;

use crate::document::Inline;

/// What text looks like: a set of forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Forms(u8);

/// One form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Spoiler,
    Strike,
    Strong,
    Emphasis,
}

impl Form {
    /// From the outermost to the innermost where several begin at once.
    pub(crate) const ALL: [Self; 4] = [Self::Spoiler, Self::Strike, Self::Strong, Self::Emphasis];
}

impl Forms {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn with(self, form: Form) -> Self {
        Self(self.0 | 1 << form as u8)
    }

    pub(crate) fn without(self, form: Form) -> Self {
        Self(self.0 & !(1 << form as u8))
    }

    pub(crate) fn has(self, form: Form) -> bool {
        self.0 & (1 << form as u8) != 0
    }
}

/// A stretch of running text. Text is never followed by text of the same form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run<'a> {
    pub(crate) forms: Forms,
    pub(crate) piece: Piece<'a>,
}

/// What a run consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(Cow<'a, str>),
    Code(&'a str),
    Math(&'a str),
    Link { to: &'a str, text: &'a [Inline] },
    Break,
}

/// The runs of running text, in order.
pub(crate) fn runs(inlines: &[Inline]) -> Vec<Run<'_>> {
    let mut runs = Vec::with_capacity(inlines.len());
    collect(inlines, Forms::NONE, &mut runs);
    runs
}

/// The runs of running text that has some forms already.
pub(crate) fn runs_within(inlines: &[Inline], forms: Forms) -> Vec<Run<'_>> {
    let mut runs = Vec::with_capacity(inlines.len());
    collect(inlines, forms, &mut runs);
    runs
}

fn collect<'a>(inlines: &'a [Inline], forms: Forms, runs: &mut Vec<Run<'a>>) {
    for inline in inlines {
        let piece = match inline {
            Inline::Strong(inner) => {
                collect(inner, forms.with(Form::Strong), runs);
                continue;
            }
            Inline::Emphasis(inner) => {
                collect(inner, forms.with(Form::Emphasis), runs);
                continue;
            }
            Inline::Strike(inner) => {
                collect(inner, forms.with(Form::Strike), runs);
                continue;
            }
            Inline::Spoiler(inner) => {
                collect(inner, forms.with(Form::Spoiler), runs);
                continue;
            }
            Inline::Text(text) => {
                push_text(text, forms, runs);
                continue;
            }
            Inline::Code(text) => Piece::Code(text),
            Inline::Math(text) => Piece::Math(text),
            Inline::Link { to, text } => Piece::Link { to, text },
            Inline::Break => Piece::Break,
        };
        runs.push(Run { forms, piece });
    }
}

/// Blanks have no form, so they belong to whatever text they stand behind.
fn push_text<'a>(text: &'a str, forms: Forms, runs: &mut Vec<Run<'a>>) {
    let is_blank = text.bytes().all(|byte| byte == b' ');
    if let Some(Run { forms: before, piece: Piece::Text(words) }) = runs.last_mut()
        && (*before == forms || is_blank)
    {
        words.to_mut().push_str(text);
    } else {
        runs.push(Run { forms, piece: Piece::Text(Cow::Borrowed(text)) });
    }
}
