//! The lines at the bottom of the screen that still change.
//!
//! What is finished is printed once, above them, and scrolls away like any output. Only the live
//! lines are ever drawn again, and never more of them than the screen holds, because what has
//! scrolled off cannot be changed.

use unicode_width::UnicodeWidthChar;

/// How large the screen is, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// The live lines as they stand on the screen. With none, the cursor is at the beginning of an empty
/// line; with some, it is behind the last of them.
#[derive(Debug)]
pub(super) struct Live {
    size: Size,
    lines: Vec<String>,
}

impl Live {
    pub(super) fn on(size: Size) -> Self {
        Self { size, lines: Vec::new() }
    }

    /// Takes another size from the next drawing on.
    pub(super) fn fit(&mut self, size: Size) {
        self.size = size;
    }

    /// What to write so that `finished` is printed for good and `live` stands below it instead of
    /// what stood there. Nothing is written for lines that stay the same.
    pub(super) fn draw(&mut self, finished: &[String], live: &[String]) -> String {
        let tail = live.len().saturating_sub(self.size.rows.saturating_sub(1).max(1));
        let next: Vec<String> = live[tail..].iter().map(|line| self.cut(line)).collect();
        let same = self.lines.iter().zip(&next).take_while(|(old, new)| old == new).count();
        let same = if finished.is_empty() { same } else { 0 };
        let mut out = String::new();
        if same < self.lines.len() {
            // The cursor has to end up behind a line, so the last is drawn even if it is the same.
            let same = same.min(next.len().saturating_sub(1));
            let up = self.lines.len() - same - 1;
            out.push('\r');
            if up > 0 {
                out.push_str(&format!("\x1b[{up}A"));
            }
            out.push_str("\x1b[J");
            self.lines.truncate(same);
        } else if same > 0 && same < next.len() {
            out.push('\n');
        }
        for line in finished {
            out.push_str(line);
            out.push('\n');
        }
        out.push_str(&next[self.lines.len()..].join("\n"));
        self.lines = next;
        out
    }

    /// A live line takes exactly one row, or the way back up could not be counted.
    fn cut(&self, line: &str) -> String {
        let mut room = self.size.columns.saturating_sub(1).max(1);
        let mut out = String::with_capacity(line.len());
        let mut escape = false;
        for c in line.chars() {
            if escape || c == '\x1b' {
                // The renderer writes attributes only: they begin with an escape and end with `m`.
                escape = c != 'm';
                out.push(c);
                continue;
            }
            let width = c.width().unwrap_or(0);
            match room.checked_sub(width) {
                Some(left) => room = left,
                None => {
                    out.push_str(if line.contains('\x1b') { "\x1b[0m" } else { "" });
                    break;
                }
            }
            out.push(c);
        }
        out
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As much of a terminal as the chat makes use of: lines, wrapping, scrolling, and the two
    /// sequences that move up and erase below.
    pub(in crate::chat) struct Emulator {
        size: Size,
        /// Everything, including what has scrolled off.
        rows: Vec<Vec<char>>,
        row: usize,
        column: usize,
    }

    impl Emulator {
        pub(in crate::chat) fn of(size: Size) -> Self {
            Self { size, rows: vec![Vec::new()], row: 0, column: 0 }
        }

        pub(in crate::chat) fn write(&mut self, text: &str) {
            let mut rest = text.chars();
            while let Some(c) = rest.next() {
                match c {
                    '\r' => self.column = 0,
                    '\n' => self.down(),
                    '\x1b' => {
                        assert_eq!(rest.next(), Some('['), "an unknown sequence in {text:?}");
                        let mut number = String::new();
                        let end = loop {
                            match rest.next().expect("a whole sequence") {
                                c if c.is_ascii_digit() || c == ';' => number.push(c),
                                c => break c,
                            }
                        };
                        match end {
                            'm' => {}
                            'A' => self.up(number.parse().unwrap()),
                            'J' => {
                                self.rows.truncate(self.row + 1);
                                self.rows[self.row].truncate(self.column);
                            }
                            other => panic!("an unknown sequence: {other}"),
                        }
                    }
                    c => self.put(c),
                }
            }
        }

        fn put(&mut self, c: char) {
            let width = c.width().unwrap_or(0);
            if self.column + width > self.size.columns {
                self.down();
            }
            let row = &mut self.rows[self.row];
            row.resize(self.column.max(row.len()), ' ');
            row.truncate(self.column);
            row.push(c);
            // Wide characters take two cells.
            row.extend((1..width).map(|_| '\0'));
            self.column += width;
        }

        fn down(&mut self) {
            self.row += 1;
            self.column = 0;
            if self.row == self.rows.len() {
                self.rows.push(Vec::new());
            }
        }

        fn up(&mut self, by: usize) {
            let top = self.rows.len().saturating_sub(self.size.rows);
            assert!(self.row >= top + by, "moved above the screen");
            self.row -= by;
        }

        /// Everything that was ever on the screen, as somebody who scrolls back sees it.
        pub(in crate::chat) fn text(&self) -> Vec<String> {
            let text = |row: &Vec<char>| row.iter().filter(|c| **c != '\0').collect::<String>();
            let mut text: Vec<String> =
                self.rows.iter().map(|row| text(row).trim_end().to_owned()).collect();
            while text.last().is_some_and(String::is_empty) {
                text.pop();
            }
            text
        }
    }

    fn owned(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn what_stays_the_same_is_not_written_again() {
        let mut live = Live::on(Size { columns: 20, rows: 10 });
        assert_eq!(live.draw(&[], &owned(&["a"])), "a");
        assert_eq!(live.draw(&[], &owned(&["a"])), "");
        assert_eq!(live.draw(&[], &owned(&["a", "b"])), "\nb");
        assert_eq!(live.draw(&[], &owned(&["a", "bc"])), "\r\x1b[Jbc");
        assert_eq!(live.draw(&[], &owned(&["x", "bc"])), "\r\x1b[1A\x1b[Jx\nbc");
        assert_eq!(live.draw(&[], &owned(&["x"])), "\r\x1b[1A\x1b[Jx");
        assert_eq!(live.draw(&owned(&["done"]), &owned(&["y"])), "\r\x1b[Jdone\ny");
        assert_eq!(live.draw(&[], &[]), "\r\x1b[J");
        assert_eq!(live.draw(&owned(&["more"]), &[]), "more\n");
        assert_eq!(live.draw(&[], &[]), "");
    }

    #[test]
    fn more_than_the_screen_holds_is_shown_from_its_end() {
        let mut live = Live::on(Size { columns: 20, rows: 3 });
        assert_eq!(live.draw(&[], &owned(&["a", "b", "c", "d"])), "c\nd");
    }

    #[test]
    fn a_live_line_takes_one_row() {
        let mut live = Live::on(Size { columns: 6, rows: 9 });
        assert_eq!(live.draw(&[], &owned(&["abcdefgh"])), "abcde");
        assert_eq!(live.draw(&[], &owned(&["日本語"])), "\r\x1b[J日本");
        let coloured = owned(&["\x1b[1mabcdefgh\x1b[0m"]);
        assert_eq!(live.draw(&[], &coloured), "\r\x1b[J\x1b[1mabcde\x1b[0m");
    }

    proptest! {
        #[test]
        fn the_screen_shows_what_was_finished_and_then_what_is_live(
            rows in 1usize..6,
            columns in 2usize..8,
            steps in proptest::collection::vec(
                (
                    proptest::collection::vec("[a-c日]{0,10}", 0..3),
                    proptest::collection::vec("[a-c日]{0,10}", 0..8),
                ),
                1..8,
            ),
        ) {
            let size = Size { columns, rows };
            let (mut live, mut terminal) = (Live::on(size), Emulator::of(size));
            let mut printed = Emulator::of(size);
            for (finished, lines) in &steps {
                terminal.write(&live.draw(finished, lines));
                for line in finished {
                    printed.write(line);
                    printed.write("\n");
                }
                let shown = lines.len().saturating_sub(rows.saturating_sub(1).max(1));
                let mut expected = printed.text();
                let bottom = printed.rows.len() - 1;
                expected.resize(bottom, String::new());
                expected.extend(lines[shown..].iter().map(|line| live.cut(line)));
                while expected.last().is_some_and(String::is_empty) {
                    expected.pop();
                }
                prop_assert_eq!(terminal.text(), expected);
            }
        }
    }
}
