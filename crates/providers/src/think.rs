//! Thoughts that a model writes into its text, told apart from what it says.
//!
//! Local models put their reasoning between tags such as `<think>` and `</think>`. A tag opens only
//! where a line begins, so that a sentence about tags stays a sentence, and never inside a code
//! block. A closing tag that closes nothing is dropped.

/// What opens a thought, and what closes it. In any case.
const TAGS: [(&str, &str); 5] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"),
    ("<reasoning_scratchpad>", "</reasoning_scratchpad>"),
];

/// Text that was told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// What the model says.
    Said(String),
    /// What it thinks.
    Thought(String),
}

/// Tells thoughts from speech as the text arrives, in whatever pieces.
#[derive(Debug, Default)]
pub(crate) struct Thoughts {
    /// Text that may be the beginning of a tag.
    held: String,
    /// What closes the thought that is open.
    inside: Option<&'static str>,
    line: Line,
    fenced: bool,
}

/// What the current line has had so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Line {
    #[default]
    Blank,
    /// That many backticks and nothing else.
    Ticks(u8),
    Text,
}

/// What begins at a `<`.
enum Match {
    /// A thought, which this closes; and how long the tag is.
    Opens(&'static str, usize),
    /// The end of a thought; and how long the tag is.
    Closes(usize),
    /// A tag, if more of it follows.
    Perhaps,
    /// Text.
    No,
}

impl Thoughts {
    /// Takes more text and says what is certain by now.
    pub(crate) fn feed(&mut self, text: &str) -> Vec<Told> {
        self.held.push_str(text);
        let held = std::mem::take(&mut self.held);
        let mut told = Vec::new();
        let mut rest = held.as_str();
        while !rest.is_empty() {
            let plain = rest.find('<').unwrap_or(rest.len());
            if plain > 0 {
                self.tell(&rest[..plain], &mut told);
                rest = &rest[plain..];
                continue;
            }
            match self.tag(rest) {
                Match::Opens(closer, length) => {
                    self.inside = Some(closer);
                    rest = &rest[length..];
                }
                Match::Closes(length) => {
                    self.inside = None;
                    rest = &rest[length..];
                }
                Match::Perhaps => {
                    self.held = rest.to_owned();
                    break;
                }
                Match::No => {
                    self.tell("<", &mut told);
                    rest = &rest[1..];
                }
            }
        }
        told
    }

    /// Says the rest: what was held back turned out to be no tag.
    pub(crate) fn finish(&mut self) -> Vec<Told> {
        let held = std::mem::take(&mut self.held);
        let mut told = Vec::new();
        if !held.is_empty() {
            self.tell(&held, &mut told);
        }
        told
    }

    fn tag(&self, rest: &str) -> Match {
        if self.fenced && self.inside.is_none() {
            return Match::No;
        }
        let mut perhaps = false;
        for (opener, closer) in TAGS {
            if self.inside.is_none() && self.line == Line::Blank {
                match begins_with(rest, opener) {
                    Some(true) => return Match::Opens(closer, opener.len()),
                    Some(false) => perhaps = true,
                    None => {}
                }
            }
            if self.inside.is_none_or(|open| open == closer) {
                match begins_with(rest, closer) {
                    Some(true) => return Match::Closes(closer.len()),
                    Some(false) => perhaps = true,
                    None => {}
                }
            }
        }
        if perhaps { Match::Perhaps } else { Match::No }
    }

    fn tell(&mut self, text: &str, told: &mut Vec<Told>) {
        if self.inside.is_none() {
            text.chars().for_each(|c| self.follow(c));
        }
        match (self.inside, told.last_mut()) {
            (None, Some(Told::Said(said))) => said.push_str(text),
            (None, _) => told.push(Told::Said(text.to_owned())),
            (Some(_), Some(Told::Thought(thought))) => thought.push_str(text),
            (Some(_), _) => told.push(Told::Thought(text.to_owned())),
        }
    }

    fn follow(&mut self, c: char) {
        self.line = match (c, self.line) {
            ('\n', _) => Line::Blank,
            (c, Line::Blank) if c.is_whitespace() => Line::Blank,
            ('`', Line::Blank) => Line::Ticks(1),
            ('`', Line::Ticks(1)) => Line::Ticks(2),
            ('`', Line::Ticks(2)) => {
                self.fenced = !self.fenced;
                Line::Text
            }
            _ => Line::Text,
        };
    }
}

/// Whether `text` begins with the whole tag, with a part of it, or with something else.
fn begins_with(text: &str, tag: &str) -> Option<bool> {
    let common = tag.len().min(text.len());
    let same = text.as_bytes()[..common].eq_ignore_ascii_case(&tag.as_bytes()[..common]);
    same.then_some(common == tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tell(deltas: &[&str]) -> (String, String) {
        let mut thoughts = Thoughts::default();
        let mut told: Vec<_> = deltas.iter().flat_map(|delta| thoughts.feed(delta)).collect();
        told.extend(thoughts.finish());
        let (mut said, mut thought) = (String::new(), String::new());
        for part in told {
            match part {
                Told::Said(text) => said.push_str(&text),
                Told::Thought(text) => thought.push_str(&text),
            }
        }
        (said, thought)
    }

    #[track_caller]
    fn check(deltas: &[&str], said: &str, thought: &str) {
        assert_eq!(tell(deltas), (said.to_owned(), thought.to_owned()), "{deltas:?}");
    }

    #[test]
    fn thoughts_are_told_from_speech() {
        check(&["<think>a</think>hello"], "hello", "a");
        check(&["hi <think> x"], "hi <think> x", "");
        check(&["x\n<thi", "nk>secret</th", "ink>\nok"], "x\n\nok", "secret");
        check(&["</think>ok"], "ok", "");
        check(&["  <reasoning>r</reasoning> y"], "   y", "r");
        check(&["a<thought>b</thought>"], "a<thought>b", "");
        check(&["<THINK>q</THINK>z"], "z", "q");
        check(&["<REASONING_SCRATCHPAD>q</reasoning_scratchpad>z"], "z", "q");
        check(&["<think>a</think><thinking>b</thinking>c"], "c", "ab");
    }

    #[test]
    fn what_only_looks_like_a_tag_is_text() {
        check(&["<thi"], "<thi", "");
        check(&["<b>bold</b>"], "<b>bold</b>", "");
        check(&["1 < 2"], "1 < 2", "");
        check(&["<think", "er>"], "<thinker>", "");
        check(&["<thé"], "<thé", "");
    }

    #[test]
    fn a_thought_that_never_ends_is_all_thought() {
        check(&["<think>a <b> </thought> c"], "", "a <b> </thought> c");
    }

    #[test]
    fn a_code_block_is_left_alone() {
        let text = "so:\n```xml\n<think>a</think>\n```\nand";
        check(&[text], text, "");
        check(&["```\nx\n```\n<think>a</think>b"], "```\nx\n```\nb", "a");
    }

    #[test]
    fn text_is_not_held_back_longer_than_needed() {
        let mut thoughts = Thoughts::default();
        assert_eq!(thoughts.feed("one <"), vec![Told::Said("one ".to_owned())]);
        assert_eq!(thoughts.feed("t two"), vec![Told::Said("<t two".to_owned())]);
    }

    proptest! {
        #[test]
        fn where_the_text_is_cut_makes_no_difference(
            parts in proptest::collection::vec(prop_oneof![
                Just("<think>"), Just("</think>"), Just("<Thinking>"), Just("</thinking>"),
                Just("<"), Just("</"), Just("th"), Just("```"), Just("\n"), Just(" "), Just("é😀"),
                Just("word"),
            ], 0..20),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
        ) {
            let text = parts.concat();
            let mut cuts: Vec<_> = cuts
                .iter()
                .map(|cut| text.floor_char_boundary(cut.index(text.len() + 1)))
                .chain([0, text.len()])
                .collect();
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
            prop_assert_eq!(tell(&pieces), tell(&[&text]));
        }
    }
}
