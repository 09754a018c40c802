//! What a model thinks, told apart from what it says, while it is being written.
//!
//! Some models put their thoughts into the text, between tags such as `<think>` and `</think>`. A tag
//! that opens counts only where a line begins, so that a sentence about tags stays a sentence. A tag
//! that closes counts anywhere, and one that closes nothing is left out. In code, tags are text.

/// The tags, in lower case. They are recognised in any case.
const NAMES: [&str; 5] = ["think", "thinking", "thought", "reasoning", "reasoning_scratchpad"];

/// A piece of what a model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It is to be shown.
    Said(String),
    /// It was between tags, which are not part of it.
    Thought(String),
}

/// Tells thoughts from speech, piece by piece. However a text is cut into pieces, the same is told.
///
/// What may still become a tag is held back, which is never more than a tag is long. Any of the tags
/// ends a thought, because a model that mixes them up would never be heard otherwise. A thought that
/// nothing ends is a thought to the end of the text.
#[derive(Debug, Clone, Default)]
pub struct Thoughts {
    held: String,
    mode: Mode,
    line: Line,
    fence: Option<Fence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    #[default]
    Speaking,
    Thinking,
}

/// What the current line of speech has so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Line {
    #[default]
    Blank,
    /// That many of these and nothing else: perhaps a fence.
    Marks(char, usize),
    Words,
    /// An odd number of ticks.
    Code,
}

/// The fence of the code block that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
}

/// What stands at a `<`.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Opening {
        length: usize,
    },
    Closing {
        length: usize,
    },
    /// A tag, if the right letters follow.
    Unfinished,
    Nothing,
}

impl Thoughts {
    /// Takes the next piece, and tells what is certain by now.
    pub fn feed(&mut self, piece: &str) -> Vec<Told> {
        let mut told = Vec::new();
        let text = std::mem::take(&mut self.held) + piece;
        let mut rest = text.as_str();
        while let Some(at) = rest.find('<') {
            self.tell(&rest[..at], &mut told);
            rest = &rest[at..];
            let length = match self.look(rest) {
                Found::Opening { length } => {
                    self.mode = Mode::Thinking;
                    length
                }
                Found::Closing { length } => {
                    self.mode = Mode::Speaking;
                    length
                }
                Found::Unfinished => {
                    self.held = rest.to_owned();
                    return told;
                }
                Found::Nothing => {
                    self.tell("<", &mut told);
                    1
                }
            };
            rest = &rest[length..];
        }
        self.tell(rest, &mut told);
        told
    }

    /// Tells what was held back; nothing follows that could make a tag of it.
    pub fn finish(&mut self) -> Vec<Told> {
        let mut told = Vec::new();
        let held = std::mem::take(&mut self.held);
        self.tell(&held, &mut told);
        told
    }

    fn look(&self, text: &str) -> Found {
        let is_code = self.fence.is_some()
            || self.line == Line::Code
            || matches!(self.line, Line::Marks('`', 1 | 3..));
        let may_open = self.mode == Mode::Speaking && !is_code && self.line == Line::Blank;
        let may_close = self.mode == Mode::Thinking || !is_code;
        let mut found = Found::Nothing;
        for name in NAMES {
            let opening = may_open.then(|| Match::of(text, "<", name));
            let closing = may_close.then(|| Match::of(text, "</", name));
            match (opening, closing) {
                (Some(Match::Whole(length)), _) => return Found::Opening { length },
                (_, Some(Match::Whole(length))) => return Found::Closing { length },
                (Some(Match::Part), _) | (_, Some(Match::Part)) => found = Found::Unfinished,
                _ => {}
            }
        }
        found
    }

    fn tell(&mut self, text: &str, told: &mut Vec<Told>) {
        if text.is_empty() {
            return;
        }
        if self.mode == Mode::Speaking {
            text.chars().for_each(|c| self.follow(c));
        }
        match (self.mode, told.last_mut()) {
            (Mode::Speaking, Some(Told::Said(before)))
            | (Mode::Thinking, Some(Told::Thought(before))) => before.push_str(text),
            (Mode::Speaking, _) => told.push(Told::Said(text.to_owned())),
            (Mode::Thinking, _) => told.push(Told::Thought(text.to_owned())),
        }
    }

    /// Keeps track of lines and code.
    fn follow(&mut self, character: char) {
        self.line = match self.line {
            Line::Marks(mark, count) if mark == character => Line::Marks(mark, count + 1),
            Line::Marks(mark, count) => self.behind_marks(mark, count, character),
            Line::Blank if matches!(character, '`' | '~') => Line::Marks(character, 1),
            Line::Blank if character.is_whitespace() => Line::Blank,
            Line::Words if character == '`' => Line::Code,
            Line::Code if character != '`' => Line::Code,
            Line::Blank | Line::Words | Line::Code => Line::Words,
        };
        if character == '\n' {
            self.line = Line::Blank;
        }
    }

    /// What marks at the start of a line were, once something else follows them.
    fn behind_marks(&mut self, mark: char, count: usize, next: char) -> Line {
        match self.fence {
            None if count >= 3 => self.fence = Some(Fence { mark, length: count }),
            Some(fence) if fence.mark == mark && count >= fence.length && next.is_whitespace() => {
                self.fence = None;
            }
            _ => {}
        }
        if mark == '`' && count == 1 { Line::Code } else { Line::Words }
    }
}

/// How a text begins with a tag.
enum Match {
    /// With all of it, which is this long.
    Whole(usize),
    /// The text ends before the tag does.
    Part,
    No,
}

impl Match {
    fn of(text: &str, sign: &str, name: &str) -> Self {
        let tag = sign.bytes().chain(name.bytes()).chain([b'>']);
        let mut length = 0;
        for (expected, byte) in tag.zip(text.bytes().map(Some).chain(std::iter::repeat(None))) {
            match byte {
                None => return Self::Part,
                Some(byte) if byte.to_ascii_lowercase() == expected => length += 1,
                Some(_) => return Self::No,
            }
        }
        Self::Whole(length)
    }
}
