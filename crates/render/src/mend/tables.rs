//! Tables whose rows do not have as many cells as their titles. The rules of Markdown drop what is too
//! much, and see no table at all when the line under the titles is of another length than they are.

use std::ops::Range;

use super::{Fence, Fenced, PIPE, content};

/// The source with every row of a table as long as its titles: a pipe that would begin a cell too many,
/// or that stands in code, becomes text. `None` when there is nothing to do.
pub(super) fn straightened(source: &str) -> Option<String> {
    let mut straight =
        Straight { source, out: String::new(), done: 0, fenced: Fenced::in_source(source) };
    let mut titles: Option<(usize, &str)> = None;
    let mut at = 0;
    while let Some(pipe) = source[at..].find('|') {
        let start = source[..at + pipe].rfind('\n').map_or(0, |newline| newline + 1);
        let line = line_at(source, start);
        at = start + line.len();
        match titles.filter(|(above, titles)| above + titles.len() == start && is_rule(line)) {
            Some((above, titles)) => at = straight.table(above, titles, line),
            None => titles = Some((start, line)),
        }
    }
    straight.finish()
}

/// A line and what ends it.
fn line_at(source: &str, start: usize) -> &str {
    source[start..].split_inclusive('\n').next().unwrap_or_default()
}

/// A source of which some lines are replaced.
struct Straight<'a> {
    source: &'a str,
    out: String,
    done: usize,
    fenced: Fenced<'a>,
}

impl Straight<'_> {
    /// Replaces what has to be replaced in a table, and says where it ends.
    fn table(&mut self, start: usize, titles: &str, rule: &str) -> usize {
        let better = row(titles, usize::MAX);
        let columns = cells(better.as_deref().unwrap_or(titles)).count();
        self.put(start, titles, better);
        self.put(start + titles.len(), rule, under(rule, columns));
        let mut at = start + titles.len() + rule.len();
        loop {
            let line = line_at(self.source, at);
            if line.trim().is_empty() || Fence::of(content(line)).is_some() {
                return at;
            }
            self.put(at, line, row(line, columns));
            at += line.len();
        }
    }

    fn put(&mut self, start: usize, line: &str, better: Option<String>) {
        if let Some(better) = better.filter(|_| !self.fenced.holds(start)) {
            self.out.push_str(&self.source[self.done..start]);
            self.out.push_str(&better);
            self.done = start + line.len();
        }
    }

    fn finish(mut self) -> Option<String> {
        if self.done == 0 {
            return None;
        }
        self.out.push_str(&self.source[self.done..]);
        Some(self.out)
    }
}

/// Whether a line may stand between the titles and the rows of a table.
fn is_rule(line: &str) -> bool {
    let line = content(line).trim();
    line.bytes().next_back().is_some_and(|byte| matches!(byte, b'|' | b':' | b'-'))
        && line.contains('|')
        && line.contains('-')
        && line.chars().all(|c| matches!(c, '|' | ':' | '-' | ' ' | '\t'))
        && cells(line).all(|cell| {
            let dashes = line[cell].trim();
            let dashes = dashes.strip_prefix(':').unwrap_or(dashes);
            let dashes = dashes.strip_suffix(':').unwrap_or(dashes);
            !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-')
        })
}

/// Where the cells of a row are.
fn cells(line: &str) -> impl Iterator<Item = Range<usize>> + use<> {
    let body = content(line);
    let start = line.len() - body.len();
    let body = body.trim_end();
    let from = start + usize::from(body.starts_with('|'));
    let is_escaped = |at: usize| line[..at].ends_with('\\');
    let last = start + body.len();
    let to = match body.ends_with('|') && last > from && !is_escaped(last - 1) {
        true => last - 1,
        false => last,
    };
    let pipes: Vec<usize> = line[from..to]
        .match_indices('|')
        .map(|(at, _)| from + at)
        .filter(|at| !is_escaped(*at))
        .chain([to])
        .collect();
    let mut begin = from;
    pipes.into_iter().map(move |pipe| {
        let cell = begin..pipe;
        begin = pipe + 1;
        cell
    })
}

/// A row without pipes in code and without more cells than there are columns, if it has any.
fn row(line: &str, columns: usize) -> Option<String> {
    let mut better = line.contains('`').then(|| without_pipes_in_code(line));
    let text = better.as_deref().unwrap_or(line);
    let mut all = cells(text);
    if let Some(last) = all.nth(columns.saturating_sub(1))
        && let Some(end) = all.last().map(|cell| cell.end)
    {
        let surplus = text[last.end..end].replace('|', PIPE.encode_utf8(&mut [0; 4]));
        better = Some(format!("{}{surplus}{}", &text[..last.end], &text[end..]));
    }
    better.filter(|better| better != line)
}

fn without_pipes_in_code(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(['`', '\\']) {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        if let Some(escaped) = from.strip_prefix('\\') {
            let escaped = 1 + escaped.chars().next().map_or(0, char::len_utf8);
            out.push_str(&from[..escaped]);
            rest = &from[escaped..];
            continue;
        }
        let after = from.trim_start_matches('`');
        let ticks = &from[..from.len() - after.len()];
        let Some(end) = closing(after, ticks.len()) else {
            out.push_str(ticks);
            rest = after;
            continue;
        };
        let (code, behind) = after.split_at(end);
        out.push_str(ticks);
        for (at, c) in code.char_indices() {
            out.push(if c == '|' && !code[..at].ends_with('\\') { PIPE } else { c });
        }
        out.push_str(ticks);
        rest = &behind[ticks.len()..];
    }
    out.push_str(rest);
    out
}

/// Where as many ticks follow as there were before, and no more.
fn closing(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        if run == ticks {
            return Some(start);
        }
        at = start + run;
    }
    None
}

/// The line under the titles, as long as they are, if it is not.
fn under(rule: &str, columns: usize) -> Option<String> {
    let given: Vec<_> = cells(rule).collect();
    if given.len() == columns {
        return None;
    }
    let mut out = rule[..rule.len() - content(rule).len()].to_owned();
    for column in 0..columns {
        let cell = given.get(column).map_or("---", |cell| rule[cell.clone()].trim());
        out.push('|');
        out.push_str(cell);
    }
    out.push('|');
    out.push_str(&rule[rule.trim_end().len()..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expect: Option<&str>) {
        let straight = straightened(source).map(|text| text.replace(PIPE, "!"));
        assert_eq!(straight.as_deref(), expect, "{source:?}");
    }

    #[test]
    fn a_row_never_has_more_cells_than_there_are_titles() {
        check("|a|b|\n|-|-|\n|1|2|", None);
        check("|a|b|\n|-|-|\n|1|2|3|4|\n\n|x|y|z|", Some("|a|b|\n|-|-|\n|1|2!3!4|\n\n|x|y|z|"));
        check("a|b\n-|-\n1|2|3", Some("a|b\n-|-\n1|2!3"));
        check("|a|b|\n|-|-|\n|`x|y`|2|", Some("|a|b|\n|-|-|\n|`x!y`|2|"));
        check("|a|b|\n|-|-|\n|x\\|y|2|", None);
        check("> |a|b|\n> |-|-|\n> |1|2|3|", Some("> |a|b|\n> |-|-|\n> |1|2!3|"));
    }

    #[test]
    fn the_line_under_the_titles_gets_their_length() {
        check("|a|b|c|\n|:-|-|\n|1|2|3|", Some("|a|b|c|\n|:-|-|---|\n|1|2|3|"));
        check("|a|b|\n|-|-|-|\n|1|2|", Some("|a|b|\n|-|-|\n|1|2|"));
    }

    #[test]
    fn a_table_in_a_code_block_is_left_alone() {
        check("```\n|a|b|\n|-|\n```", None);
    }
}
