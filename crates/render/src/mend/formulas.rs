//! Formulas, whose underscores and stars are no marks; products such as `2*3*4`; and marks beside wide
//! punctuation, which the rules of Markdown do not see because they expect spaces between words.

use super::{Fenced, NOTHING, TIMES, numbered};

/// A formula within a line that is longer than this is two prices.
const LONGEST_INLINE: usize = 1000;

/// The source with a number in the place of each formula, and with a letter between marks and wide
/// punctuation. `None` when there is neither.
pub(super) fn marked(source: &str, formulas: &mut Vec<String>) -> Option<String> {
    let mut out = String::new();
    let mut done = 0;
    let mut finder = Finder::in_source(source);
    let mut at = 0;
    while let Some(found) = source[at..].find(['$', '\\', '*', '~']) {
        let start = at + found;
        let mark = source[start..].chars().next().expect("something was found");
        if matches!(mark, '*' | '~') {
            let end = source.len() - source[start..].trim_start_matches(mark).len();
            at = end;
            if mark == '~' && end - start != 2 {
                continue;
            }
            let before = source[..start].chars().next_back().unwrap_or(' ');
            let after = source[end..].chars().next().unwrap_or(' ');
            if mark == '*' && end - start == 1 && before.is_ascii_digit() && after.is_ascii_digit()
            {
                out.push_str(&source[done..start]);
                out.push(TIMES);
                done = end;
            } else if cannot_open(before, after) {
                out.push_str(&source[done..end]);
                out.push(NOTHING);
                done = end;
            } else if cannot_open(after, before) {
                out.push_str(&source[done..start]);
                out.push(NOTHING);
                done = start;
            }
            continue;
        }
        match finder.formula_at(start) {
            Some(end) => {
                out.push_str(&source[done..start]);
                out.push_str(&numbered(formulas.len()));
                formulas.push(source[start..end].to_owned());
                done = end;
                at = end;
            }
            // What a backslash escapes is no mark.
            None if mark == '\\' => {
                at = start + 1 + source[start + 1..].chars().next().map_or(0, char::len_utf8);
            }
            None => at = start + source[start..].bytes().take_while(|b| *b == b'$').count(),
        }
    }
    if done == 0 && out.is_empty() {
        return None;
    }
    out.push_str(&source[done..]);
    Some(out)
}

/// Whether marks between these cannot begin anything because punctuation follows a letter, where that
/// is wrong: in scripts that put no spaces between words. Turned around, whether they cannot end.
fn cannot_open(before: char, after: char) -> bool {
    let is_punctuation = |c: char| !c.is_alphanumeric() && !c.is_whitespace() && c != '\\';
    before.is_alphanumeric() && is_punctuation(after) && (is_wide(before) || is_wide(after))
}

fn is_wide(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ffee}' | '\u{20000}'..='\u{3ffff}')
        || matches!(c, '“' | '”' | '‘' | '’' | '…' | '—' | '·')
}

/// Looks for formulas. Each of its searches goes on where the one before it ended, so that all of them
/// together read the source a few times at most.
struct Finder<'a> {
    source: &'a str,
    closers: [Next<'a>; 3],
    blank_line: Next<'a>,
    fenced: Fenced<'a>,
}

/// Where something occurs next.
struct Next<'a> {
    needle: &'a str,
    at: usize,
}

impl Next<'_> {
    fn behind(&mut self, source: &str, from: usize) -> usize {
        if self.at < from || self.at == 0 {
            self.at = source[from..].find(self.needle).map_or(usize::MAX, |found| from + found);
        }
        self.at
    }
}

impl<'a> Finder<'a> {
    fn in_source(source: &'a str) -> Self {
        let next = |needle| Next { needle, at: 0 };
        Self {
            source,
            closers: [next("$$"), next("\\]"), next("\\)")],
            blank_line: next("\n\n"),
            fenced: Fenced::in_source(source),
        }
    }

    /// Where the formula that begins here ends, if one does.
    fn formula_at(&mut self, start: usize) -> Option<usize> {
        let rest = &self.source[start..];
        let closer = match rest.as_bytes() {
            [b'$', b'$', ..] => 0,
            [b'\\', b'[', ..] => 1,
            [b'\\', b'(', ..] => 2,
            [b'$', ..] => return self.between_dollars(start),
            _ => return None,
        };
        let body = start + 2;
        let close = self.closers[closer].behind(self.source, body);
        if close == usize::MAX || close > self.blank_line.behind(self.source, start) {
            return None;
        }
        let text = &self.source[body..close];
        if text.trim().is_empty() || text.contains('`') || text.contains("://") {
            return None;
        }
        let is_line = !text.contains('\n');
        let is_display = || {
            closer < 2
                && self.stands_alone(start, body)
                && !breaks_out(text)
                // Its lines may have an indentation that is not theirs.
                && !self.fenced.holds(start)
        };
        // Brackets are escaped in prose, too.
        let is_prose = closer == 1 && is_line && !looks_like_a_formula(text);
        (!is_prose && (is_line || is_display())).then_some(close + 2)
    }

    /// A formula on several lines begins a line or has nothing behind its first mark.
    fn stands_alone(&self, start: usize, body: usize) -> bool {
        let line = self.source[..start].rfind('\n').map_or(0, |newline| newline + 1);
        super::content(&self.source[line..start]).trim().is_empty()
            || self.source[body..].trim_start_matches([' ', '\t']).starts_with('\n')
    }

    /// `$a$`, but neither `$5 and $6` nor `$5-$6`.
    fn between_dollars(&self, start: usize) -> Option<usize> {
        let body = start + 1;
        let line = self.source[body..].split('\n').next().unwrap_or_default();
        let line = &line[..line.floor_char_boundary(LONGEST_INLINE)];
        if line.starts_with(|c: char| c.is_whitespace() || c == '$') {
            return None;
        }
        let end =
            line.match_indices('$').map(|(at, _)| at).find(|at| !line[..*at].ends_with('\\'))?;
        let (text, after) = (&line[..end], line[end + 1..].chars().next());
        let is_formula = !text.ends_with(char::is_whitespace)
            && after.is_none_or(|c| !c.is_ascii_digit() && c != '$')
            && !text.contains('`')
            && !text.contains("://")
            && !self.crosses_cells(start, text);
        is_formula.then_some(body + end + 1)
    }

    /// Whether a pipe in the text separates cells instead of belonging to the formula.
    fn crosses_cells(&self, start: usize, text: &str) -> bool {
        if text.bytes().filter(|byte| *byte == b'|').count() % 2 == 0 {
            return false;
        }
        let line = self.source[..start].rfind('\n').map_or(0, |newline| newline + 1);
        super::content(&self.source[line..]).starts_with('|')
    }
}

fn looks_like_a_formula(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit() || "\\^_=+<>{}|".contains(c))
}

/// Whether lines of a text would be something else than lines of a formula.
fn breaks_out(text: &str) -> bool {
    let mut lines = text.split('\n').skip(1).peekable();
    while let Some(line) = lines.next() {
        let line = line.trim();
        let is_blank = line.is_empty() && lines.peek().is_some();
        if is_blank || line.starts_with('>') || line.starts_with("~~~") {
            return true;
        }
    }
    false
}

/// A formula without the indentation of the list that it stands in.
pub(crate) fn unindented(formula: &str) -> String {
    let mut lines = formula.lines();
    let first = lines.next().unwrap_or_default();
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let margin =
        lines.clone().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let mut text = first.trim_end().replace('\t', " ");
    for line in lines {
        text.push('\n');
        text.push_str(&line.get(margin..).unwrap_or_default().trim_end().replace('\t', " "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expect: &[&str]) {
        let mut formulas = Vec::new();
        marked(source, &mut formulas);
        assert_eq!(formulas, expect, "{source:?}");
    }

    #[test]
    fn formulas_are_found_and_prices_are_not() {
        check(
            "$a_1$ and $$b*c$$, \\(d\\), \\[f=g\\]",
            &["$a_1$", "$$b*c$$", "\\(d\\)", "\\[f=g\\]"],
        );
        check("quoted \\[sic\\] and \\[ \\]", &[]);
        check("costs $5 and $10, or $5-$10", &[]);
        check("\\$a$ b $c\\$ d", &[]);
        check("`$HOME` and `$PATH`", &[]);
        check("|$a|$b|", &[]);
        check("$a [b](https://c.example) d$ \\[<https://c.example>\\]", &[]);
        check("|$|a|$|b|", &["$|a|$"]);
        check("$P(A|B)$", &["$P(A|B)$"]);
        check("\\\\(a\\\\)", &[]);
        check("\\[\n\n\\]", &[]);
        check("echo $$\n```\n$$", &[]);
    }

    #[test]
    fn a_formula_on_lines_of_its_own_loses_its_margin() {
        check("1. so:\n   $$\n   a\n     + b\n   $$\nc", &["$$\n   a\n     + b\n   $$"]);
        assert_eq!(unindented("$$\n   a\n     + b\n   $$"), "$$\na\n  + b\n$$");
        check("\\[\n- a\n= b\n\\]", &["\\[\n- a\n= b\n\\]"]);
        check("one $$ two\nthree $$ four", &[]);
        check("- ```tex\n  $$\n  a\n  $$\n  ```\n$$\nb\n$$", &["$$\nb\n$$"]);
    }

    #[test]
    fn marks_beside_wide_punctuation_get_a_letter() {
        for (source, expect) in [
            ("**中文（说明）**后续", Some("**中文（说明）\u{fdd1}**后续")),
            ("这是**“重要”**的", Some("这是**\u{fdd1}“重要”\u{fdd1}**的")),
            ("a**(b)**c", None),
            ("他说：**重点**", Some("他说：\u{fdd1}**重点**")),
            ("**a** b", None),
        ] {
            assert_eq!(marked(source, &mut Vec::new()).as_deref(), expect, "{source:?}");
        }
    }

    #[test]
    fn openers_without_an_end_take_linear_time() {
        for source in ["\\[\n".repeat(100_000), "$a ".repeat(60_000), "\\(".repeat(90_000)] {
            marked(&source, &mut Vec::new());
        }
    }
}
