//! The tree that every dialect reads.

/// A text, parsed. Only [`parse`](crate::parse) makes one, so a dialect may rely on this: it is not
/// nested deeper than a recursive walk can bear, no link holds another link, no heading holds a line
/// break, and no text in it holds a control character, except line breaks and tabs in code blocks and
/// line breaks in formulas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub(crate) blocks: Vec<Block>,
}

impl Document {
    /// What it consists of, from top to bottom.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }
}

/// Something that stands on lines of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// Running text.
    Paragraph(Vec<Inline>),
    /// A title.
    Heading {
        /// From one, the most important, to six.
        level: u8,
        /// What it says.
        text: Vec<Inline>,
    },
    /// Items below each other.
    List {
        /// What stands before the items.
        marker: Marker,
        /// How far apart they are.
        spacing: Spacing,
        /// In order.
        items: Vec<Item>,
    },
    /// Somebody else's words.
    Quote(Vec<Block>),
    /// Lines to be kept as they are.
    Code {
        /// In lower case and of `a-z 0-9 + # -` only.
        language: Option<String>,
        /// Without the last line break.
        text: String,
    },
    /// Rows and columns.
    Table {
        /// One per column.
        columns: Vec<Align>,
        /// The titles of the columns.
        head: Vec<Cell>,
        /// Empty cells at the end of a row are left out.
        rows: Vec<Vec<Cell>>,
    },
    /// A line across.
    Rule,
}

/// What stands before the items of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// The same sign before each.
    Bullet,
    /// Numbers that count up from this one.
    Number(u64),
}

/// How far apart the items of a list are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// On lines that follow each other.
    Tight,
    /// With empty lines between them.
    Loose,
}

/// One item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Whether it is done, when it is something to do.
    pub task: Option<Task>,
    /// What it says.
    pub blocks: Vec<Block>,
}

/// Whether something to do is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Not yet.
    Open,
    /// Yes.
    Done,
}

/// Where the text of a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// At the left edge.
    Left,
    /// In the middle.
    Center,
    /// At the right edge.
    Right,
}

/// One cell of a table.
pub type Cell = Vec<Inline>;

/// A piece of running text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inline {
    /// Words.
    Text(String),
    /// Said louder.
    Strong(Vec<Inline>),
    /// Said with stress.
    Emphasis(Vec<Inline>),
    /// Taken back.
    Strike(Vec<Inline>),
    /// Hidden until somebody wants to see it.
    Spoiler(Vec<Inline>),
    /// To be kept as it is.
    Code(String),
    /// A formula as it was written, with the marks around it. Nobody here sets formulas, so it is shown
    /// as text; but nothing in it is a mark of Markdown.
    Math(String),
    /// A way to somewhere else. Images are links too: nothing is fetched just because it was named.
    Link {
        /// The address as it was written; a dialect decides which addresses it makes active.
        to: String,
        /// What to show for it; never empty.
        text: Vec<Inline>,
    },
    /// The line ends here.
    Break,
}

/// The words of running text without any form, a space for each line break.
pub(crate) fn words(inlines: &[Inline]) -> String {
    fn collect(inlines: &[Inline], into: &mut String) {
        for inline in inlines {
            match inline {
                Inline::Text(text) | Inline::Code(text) => into.push_str(text),
                Inline::Math(text) => into.push_str(&text.replace('\n', " ")),
                Inline::Strong(inner)
                | Inline::Emphasis(inner)
                | Inline::Strike(inner)
                | Inline::Spoiler(inner)
                | Inline::Link { text: inner, .. } => collect(inner, into),
                Inline::Break => into.push(' '),
            }
        }
    }
    let mut text = String::new();
    collect(inlines, &mut text);
    text
}

/// Whether there is a link whose address would be lost with its form.
pub(crate) fn hides_address(inlines: &[Inline]) -> bool {
    inlines.iter().any(|inline| match inline {
        Inline::Link { to, text } => !shows_address(text, to),
        Inline::Strong(inner)
        | Inline::Emphasis(inner)
        | Inline::Strike(inner)
        | Inline::Spoiler(inner) => hides_address(inner),
        Inline::Text(_) | Inline::Code(_) | Inline::Math(_) | Inline::Break => false,
    })
}

/// Whether a link's text says no more than its address does.
pub(crate) fn shows_address(text: &[Inline], to: &str) -> bool {
    let shown = words(text);
    shown == to || to.strip_prefix("mailto:") == Some(&shown)
}
