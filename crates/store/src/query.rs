//! What a search asks, and whether and where a text answers it.
//!
//! Every store finds the same: an index only proposes texts, and this decides. Case, accents and
//! line breaks do not matter. A query is data: it has no syntax and cannot be wrong.

use icu_normalizer::properties::{CanonicalDecompositionBorrowed, Decomposed};
use talaria_model::EntryBody;

/// The rest of a longer query is not looked at.
const LONGEST_QUERY: usize = 200;

/// A last word of at least this many characters may be unfinished, as it is while somebody types.
const SHORTEST_PREFIX: usize = 3;

/// How many characters an excerpt shows before the match, of it, and after it.
const BEFORE: usize = 60;
const MATCH: usize = 120;
const AFTER: usize = 100;

/// The part of an entry that people see, and that is searched; none for what only the model reads.
pub fn visible(body: &EntryBody) -> Option<&str> {
    match body {
        EntryBody::Said { text, .. }
        | EntryBody::Aside { text, .. }
        | EntryBody::Answered { text, .. }
        | EntryBody::Noticed { text, .. } => Some(text),
        EntryBody::Returned { .. } | EntryBody::Summary { .. } => None,
    }
}

/// A text as it is compared: lower case, without accents, every run of spaces, line breaks and
/// control characters one space.
pub fn fold(text: &str) -> String {
    Folded::of(text).text
}

/// The words of a folded text. Where a script puts no spaces between words, and for pictures, each
/// character is a word.
pub fn words(folded: &str) -> impl Iterator<Item = &str> {
    let mut rest = folded;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| Kind::of(c) == Kind::Between);
        let first = rest.chars().next()?;
        let length = match Kind::of(first) {
            Kind::Letter => rest.find(|c| Kind::of(c) != Kind::Letter).unwrap_or(rest.len()),
            Kind::Alone | Kind::Between => first.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        rest = after;
        Some(word)
    })
}

/// Whether a word is one character of a script without spaces, or a picture.
pub fn stands_alone(word: &str) -> bool {
    word.chars().next().is_some_and(|first| Kind::of(first) == Kind::Alone)
}

/// Every two characters of a folded text that follow each other and are words each.
pub fn pairs(folded: &str) -> impl Iterator<Item = &str> {
    let characters = folded.char_indices().zip(folded.char_indices().skip(1));
    let alone = |c: char| Kind::of(c) == Kind::Alone;
    characters
        .filter(move |((_, first), (_, second))| alone(*first) && alone(*second))
        .map(|((start, _), (at, second))| &folded[start..at + second.len_utf8()])
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    whole: String,
}

/// Where a text answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// How well.
    pub closeness: Closeness,
    /// The text around the match, with the match between `\u{2}` and `\u{3}`.
    pub excerpt: String,
}

/// What a word of a text is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// It is this.
    Whole(&'a str),
    /// It begins with this.
    Beginning(&'a str),
    /// It ends with this.
    End(&'a str),
    /// It has this in it.
    Within(&'a str),
}

impl Part<'_> {
    /// Whether a word is like that.
    pub fn fits(self, word: &str) -> bool {
        match self {
            Self::Whole(part) => word == part,
            Self::Beginning(part) => word.starts_with(part),
            Self::End(part) => word.ends_with(part),
            Self::Within(part) => word.contains(part),
        }
    }
}

/// How well a text answers; the best is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closeness {
    /// It has all the words.
    Words,
    /// It has all the words but the last, and one that begins like the last.
    Beginning,
    /// It has the query somewhere, within words too.
    Substring,
}

impl Query {
    /// None when nothing is asked.
    pub fn new(text: &str) -> Option<Self> {
        let cut = text.char_indices().nth(LONGEST_QUERY).map_or(text, |(end, _)| &text[..end]);
        let whole = fold(cut).trim_end().to_owned();
        (!whole.is_empty()).then_some(Self { whole })
    }

    /// The query as it is compared.
    pub fn folded(&self) -> &str {
        &self.whole
    }

    /// The words that every text has which answers by words. Empty when the query has nothing but
    /// signs. A text that answers by a beginning has all but the last, and one that begins so.
    pub fn words(&self) -> Vec<&str> {
        words(&self.whole).collect()
    }

    /// What the words of every text are like that has the query somewhere in it. Empty when the query
    /// has nothing but signs.
    pub fn parts(&self) -> Vec<Part<'_>> {
        let letter = |c: Option<char>| c.is_some_and(|c| Kind::of(c) == Kind::Letter);
        let begins = letter(self.whole.chars().next());
        let ends = letter(self.whole.chars().next_back());
        let words = self.words();
        let last = words.len().saturating_sub(1);
        let part = |(at, word)| match (begins && at == 0, ends && at == last) {
            (true, true) => Part::Within(word),
            (true, false) => Part::End(word),
            (false, true) => Part::Beginning(word),
            (false, false) => Part::Whole(word),
        };
        words.into_iter().enumerate().map(part).collect()
    }

    /// Whether the last word may be unfinished: a short one would begin too many.
    pub fn may_be_unfinished(&self) -> bool {
        let ending = self.whole.chars().rev().take_while(|c| Kind::of(*c) == Kind::Letter);
        ending.take(SHORTEST_PREFIX).count() == SHORTEST_PREFIX
    }

    /// Whether and where a text answers.
    pub fn find(&self, text: &str) -> Option<Hit> {
        let folded = Folded::of(text);
        let whole = folded.text.find(&self.whole).map(|start| (start, self.whole.len()));
        let by_words = self.first_term(&folded.text, Last::Finished);
        let (closeness, (start, length)) = if let Some(first) = by_words {
            (Closeness::Words, whole.unwrap_or(first))
        } else if self.may_be_unfinished()
            && let Some(first) = self.first_term(&folded.text, Last::Unfinished)
        {
            (Closeness::Beginning, whole.unwrap_or(first))
        } else {
            (Closeness::Substring, whole?)
        };
        let excerpt = excerpt(text, folded.origin[start], folded.origin[start + length]);
        Some(Hit { closeness, excerpt })
    }

    /// Where the first term stands, if all terms stand in the text as words.
    fn first_term(&self, folded: &str, last: Last) -> Option<(usize, usize)> {
        let mut first = None;
        let mut terms = self.whole.split(' ').peekable();
        while let Some(term) = terms.next() {
            let open = terms.peek().is_none() && last == Last::Unfinished;
            let start = folded.match_indices(term).map(|(start, _)| start).find(|&start| {
                let end = start + term.len();
                is_border(folded, start) && (open || is_border(folded, end))
            })?;
            first = first.or(Some((start, term.len())));
        }
        first
    }
}

/// Whether the last term has to end where a word ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Finished,
    Unfinished,
}

/// Whether a word may begin or end here.
fn is_border(folded: &str, at: usize) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(|c| Kind::of(c) == Kind::Letter);
    !(is_letter(folded[..at].chars().next_back()) && is_letter(folded[at..].chars().next()))
}

fn excerpt(text: &str, start: usize, end: usize) -> String {
    let from = text[..start].char_indices().nth_back(BEFORE - 1).map_or(0, |(at, _)| at);
    let to = text[end..].char_indices().nth(AFTER).map_or(text.len(), |(at, _)| end + at);
    let found = &text[start..end];
    let cut = found.char_indices().nth(MATCH).map_or(found, |(at, _)| &found[..at]);
    let mut excerpt = String::new();
    if from > 0 {
        excerpt.push('…');
    }
    push_clean(&mut excerpt, &text[from..start]);
    excerpt.push('\u{2}');
    push_clean(&mut excerpt, cut);
    excerpt.push('\u{3}');
    push_clean(&mut excerpt, &text[end..to]);
    if to < text.len() {
        excerpt.push('…');
    }
    excerpt
}

/// Without control characters: a text must not be able to forge the marks around a match.
fn push_clean(into: &mut String, text: &str) {
    let mut after_space = false;
    for c in text.chars() {
        let space = c.is_whitespace() || c.is_control();
        if !space {
            into.push(c);
        } else if !after_space {
            into.push(' ');
        }
        after_space = space;
    }
}

/// A folded text that remembers where each byte came from.
struct Folded {
    text: String,
    origin: Vec<usize>,
}

impl Folded {
    fn of(text: &str) -> Self {
        let mut folded = Self {
            text: String::with_capacity(text.len()),
            origin: Vec::with_capacity(text.len() + 1),
        };
        for (at, c) in text.char_indices() {
            if c.is_ascii_graphic() {
                folded.push(c.to_ascii_lowercase(), at);
            } else if c.is_whitespace() || c.is_control() {
                if !folded.text.is_empty() && !folded.text.ends_with(' ') {
                    folded.push(' ', at);
                }
            } else {
                folded.push_base(c, at);
            }
        }
        folded.origin.push(text.len());
        folded
    }

    fn push(&mut self, c: char, at: usize) {
        self.text.push(c);
        self.origin.resize(self.text.len(), at);
    }

    fn push_base(&mut self, c: char, at: usize) {
        const DECOMPOSITION: CanonicalDecompositionBorrowed<'static> =
            CanonicalDecompositionBorrowed::new();
        // A Korean syllable and a voiced kana are letters of their own, not letters with an accent.
        let whole = matches!(c, '\u{AC00}'..='\u{D7AF}' | '\u{3040}'..='\u{30FF}');
        match if whole { Decomposed::Default } else { DECOMPOSITION.decompose(c) } {
            Decomposed::Singleton(same) => self.push_base(same, at),
            Decomposed::Expansion(base, mark) => {
                self.push_base(base, at);
                self.push_base(mark, at);
            }
            Decomposed::Default if is_mark(c) => {}
            Decomposed::Default if c == 'ς' => self.push('σ', at),
            Decomposed::Default => {
                for lower in c.to_lowercase().filter(|lower| !is_mark(*lower)) {
                    self.push(lower, at);
                }
            }
        }
    }
}

/// Accents, and the signs that choose between the text form and the colour form of a picture.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}' | '\u{FE00}'..='\u{FE0F}')
}

/// What a character is to a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Alone,
    Between,
}

impl Kind {
    fn of(c: char) -> Self {
        if c.is_ascii() {
            return if c.is_ascii_alphanumeric() { Self::Letter } else { Self::Between };
        }
        match c {
            // Thai, Lao, Myanmar, Khmer; Hangul; kana, bopomofo and ideographs.
            '\u{0E00}'..='\u{0EFF}'
            | '\u{1000}'..='\u{109F}'
            | '\u{1100}'..='\u{11FF}'
            | '\u{1780}'..='\u{17FF}'
            | '\u{2E80}'..='\u{2FDF}'
            | '\u{3040}'..='\u{31FF}'
            | '\u{3400}'..='\u{9FFF}'
            | '\u{A960}'..='\u{A97F}'
            | '\u{AC00}'..='\u{D7FF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{FF66}'..='\u{FFDC}'
            | '\u{20000}'..='\u{3FFFF}' => Self::Alone,
            // Arrows, signs, dingbats and emoji.
            '\u{2190}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}' => Self::Alone,
            c if c.is_alphanumeric() => Self::Letter,
            _ => Self::Between,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(query: &str, text: &str, expected: Option<(Closeness, &str)>) {
        let hit = Query::new(query).and_then(|query| query.find(text));
        let hit =
            hit.map(|hit| (hit.closeness, hit.excerpt.replace('\u{2}', "[").replace('\u{3}', "]")));
        assert_eq!(hit, expected.map(|(closeness, text)| (closeness, text.to_owned())), "{query}");
    }

    #[test]
    fn all_words_in_any_order_or_the_text_as_it_is() {
        use Closeness::{Beginning, Substring, Words};
        check("blue whale", "The whale is blue.", Some((Words, "The whale is [blue].")));
        check("blue whale", "A blue whale!", Some((Words, "A [blue whale]!")));
        check("blue whale", "The whale is bluest", None);
        check("whal", "Two whales", Some((Beginning, "Two [whal]es")));
        check("wh", "Two whales", Some((Substring, "Two [wh]ales")));
        check("hale", "Two whales", Some((Substring, "Two w[hale]s")));
        check("", "Two whales", None);
        check(" \n ", "Two whales", None);
    }

    #[test]
    fn case_accents_and_line_breaks_do_not_matter() {
        use Closeness::{Beginning, Words};
        check("CREME brulee", "Crème\nbrûlée", Some((Words, "[Crème brûlée]")));
        check("crème", "creme", Some((Words, "[creme]")));
        check("brul", "Crème brûlée", Some((Beginning, "Crème [brûl]ée")));
        check("Việt", "viet nam", Some((Words, "[viet] nam")));
        check("ΟΔΟΣ", "οδός", Some((Words, "[οδός]")));
        check("istanbul", "İstanbul", Some((Words, "[İstanbul]")));
    }

    #[test]
    fn scripts_without_spaces_and_pictures_are_found() {
        use Closeness::Words;
        check("会议", "我们明天开会议吗", Some((Words, "我们明天开[会议]吗")));
        check("议会", "我们明天开会议吗", None);
        check("회의", "내일 회의를 합니다", Some((Words, "내일 [회의]를 합니다")));
        check("か", "がある", None);
        check("🎉", "done🎉", Some((Words, "done[🎉]")));
        check("❤", "I ❤️ it", Some((Words, "I [❤️] it")));
        check("👩‍💻", "a 👩‍💻 b", Some((Words, "a [👩‍💻] b")));
    }

    #[test]
    fn signs_are_data() {
        use Closeness::{Substring, Words};
        check("\"", "say \"hi\"", Some((Words, "say [\"]hi\"")));
        check("c++ NOT (", "learn C++ not (yet)", Some((Words, "learn [C++ not (]yet)")));
        check("*", "a*b", Some((Words, "a[*]b")));
        check("a*b", "a*bc", Some((Substring, "[a*b]c")));
    }

    #[test]
    fn a_text_cannot_forge_the_marks() {
        check("b", "a\u{2}b\u{3}c", Some((Closeness::Words, "a [b] c")));
    }

    #[test]
    fn a_long_text_is_cut_around_the_match() {
        let text = format!("{} needle {}", "a".repeat(500), "b".repeat(500));
        let hit = Query::new("needle").and_then(|query| query.find(&text)).expect("it is there");
        assert!(hit.excerpt.starts_with("…aaa") && hit.excerpt.ends_with("bbb…"));
        assert_eq!(hit.excerpt.chars().count(), 2 + 2 + BEFORE + "needle".len() + AFTER);
    }

    proptest! {
        #[test]
        fn an_index_of_words_never_misses_an_answer(
            query in "[ a-cA-C会议é*\"'.-]{0,8}", text in "[ \na-cA-C会议é*\"'.-]{0,24}",
        ) {
            let Some(query) = Query::new(&query) else { return Ok(()) };
            let folded = fold(&text);
            let has = |word: &&str| words(&folded).any(|other| other == *word);
            let begins = |start: &&str| words(&folded).any(|other| other.starts_with(start));
            let wanted = query.words();
            match query.find(&text).map(|hit| hit.closeness) {
                Some(Closeness::Words) => {
                    prop_assert!(wanted.iter().all(has));
                    let has = |pair: &str| pairs(&folded).any(|other| other == pair);
                    prop_assert!(pairs(query.folded()).all(has));
                }
                Some(Closeness::Beginning) => {
                    let (last, others) = wanted.split_last().expect("a beginning is a word");
                    prop_assert!(begins(last) && others.iter().all(has));
                }
                Some(Closeness::Substring) | None => {}
            }
            if folded.contains(query.folded()) {
                for part in query.parts() {
                    prop_assert!(words(&folded).any(|word| part.fits(word)), "{:?}", part);
                }
            }
        }

        #[test]
        fn any_query_on_any_text_gives_a_bounded_excerpt(query in ".*", text in ".*") {
            let Some(query) = Query::new(&query) else { return Ok(()) };
            if let Some(hit) = query.find(&text) {
                prop_assert!(hit.excerpt.chars().count() <= BEFORE + MATCH + AFTER + 4);
                prop_assert_eq!(hit.excerpt.matches('\u{2}').count(), 1);
                prop_assert_eq!(hit.excerpt.matches('\u{3}').count(), 1);
            }
        }

        #[test]
        fn a_text_is_found_by_any_part_of_it(text in ".{1,60}", from in 0usize..60, many in 1usize..20) {
            let part: String = text.chars().skip(from).take(many).collect();
            let Some(query) = Query::new(&part) else { return Ok(()) };
            prop_assert!(query.find(&text).is_some(), "{:?} in {:?}", query, text);
        }
    }
}
