//! What must hold, read from the vendor's own truth.

use std::collections::HashMap;
use std::fmt;

use super::truth::{Shown, Truth};
use crate::echo::{Token, complete, mentioned};

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// Somebody said something and got no whole answer.
    Lost {
        /// What they said.
        token: Token,
        /// Where.
        chat: String,
        /// Whether it had been acknowledged.
        acked: bool,
    },
    /// The same answer is visible twice and nothing says so.
    Repeated {
        /// What it answers.
        token: Token,
        /// Where.
        chat: String,
    },
    /// Half an answer stayed, and no whole one follows that says so.
    LeftBehind {
        /// What it answers.
        token: Token,
        /// Where.
        chat: String,
        /// What can be read.
        text: String,
    },
    /// Something said later was answered earlier.
    OutOfOrder {
        /// Where.
        chat: String,
        /// Said first.
        first: Token,
        /// Said later, answered before.
        later: Token,
    },
    /// An answer appeared where its message was not said.
    WrongChat {
        /// What it answers.
        token: Token,
        /// Where it appeared.
        chat: String,
    },
    /// Something appeared that answers nothing.
    Stray {
        /// Where.
        chat: String,
        /// What.
        text: String,
    },
    /// A gateway came back knowing less than it had acknowledged.
    Forgotten {
        /// What had been acknowledged.
        acked: u64,
        /// What it says it knows.
        cursor: u64,
    },
    /// A gateway acknowledged what it was never told.
    Foretold {
        /// What it was told.
        told: u64,
        /// What it acknowledged.
        acked: u64,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { token, chat, acked } => {
                let acked = if *acked { "acknowledged" } else { "not acknowledged" };
                write!(f, "{token} in {chat} ({acked}) has no whole answer")
            }
            Self::Repeated { token, chat } => {
                write!(f, "the answer to {token} is in {chat} twice, unmarked")
            }
            Self::LeftBehind { token, chat, text } => {
                write!(f, "half an answer to {token} stayed in {chat}: {text:?}")
            }
            Self::OutOfOrder { chat, first, later } => {
                write!(f, "in {chat}, {later} was answered before {first}")
            }
            Self::WrongChat { token, chat } => {
                write!(f, "the answer to {token} appeared in {chat}")
            }
            Self::Stray { chat, text } => write!(f, "{chat} got {text:?} for no reason"),
            Self::Forgotten { acked, cursor } => {
                write!(f, "came back at {cursor} after acknowledging {acked}")
            }
            Self::Foretold { told, acked } => {
                write!(f, "acknowledged {acked} when told up to {told}")
            }
        }
    }
}

impl Truth {
    /// Every promise that is broken, once everything has been answered that ever will be.
    pub fn check(&self) -> Vec<Violation> {
        let mut found = self.seen_on_the_wire.clone();
        let mut whole: HashMap<Token, Vec<usize>> = HashMap::new();
        for (place, shown) in self.shown.iter().enumerate() {
            self.check_shown(place, shown, &mut found);
            for token in complete(&shown.text) {
                whole.entry(token).or_default().push(place);
            }
        }
        let mut said: Vec<_> = self.said.values().collect();
        said.sort_by_key(|said| said.number);
        let mut last: HashMap<&str, (usize, Token)> = HashMap::new();
        for said in said {
            let places = whole.get(&said.token).map(Vec::as_slice).unwrap_or_default();
            let Some(&first) = places.first() else {
                found.push(Violation::Lost {
                    token: said.token,
                    chat: said.chat.clone(),
                    acked: said.number <= self.acked,
                });
                continue;
            };
            if places.iter().filter(|place| !self.shown[**place].is_marked()).count() > 1 {
                found.push(Violation::Repeated { token: said.token, chat: said.chat.clone() });
            }
            if let Some((place, later)) = last.insert(&said.chat, (first, said.token))
                && place > first
            {
                let chat = said.chat.clone();
                found.push(Violation::OutOfOrder { chat, first: later, later: said.token });
            }
        }
        found
    }

    fn check_shown(&self, place: usize, shown: &Shown, found: &mut Vec<Violation>) {
        let tokens = mentioned(&shown.text);
        if tokens.is_empty() {
            let (chat, text) = (shown.chat.clone(), shown.text.clone());
            found.push(Violation::Stray { chat, text });
        }
        let whole = complete(&shown.text);
        for token in tokens {
            if self.said.get(&token).is_none_or(|said| said.chat != shown.chat) {
                found.push(Violation::WrongChat { token, chat: shown.chat.clone() });
            } else if !whole.contains(&token) && !self.goes_on(place, token) {
                let (chat, text) = (shown.chat.clone(), shown.text.clone());
                found.push(Violation::LeftBehind { token, chat, text });
            }
        }
    }

    /// Whether the answer is whole further down: its next part, or all of it, marked.
    fn goes_on(&self, place: usize, token: Token) -> bool {
        self.shown[place + 1..].iter().any(|later| {
            let is_part = !later.text.contains("echo:");
            complete(&later.text).contains(&token) && (is_part || later.is_marked())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::truth::Said;
    use super::*;
    use crate::echo::echo;

    const MARKED: &str = "*(sent again after an interruption; you may have seen this)*\n\n";

    /// What was said where, what was shown where, and what the check makes of it.
    fn check(said: &[(&str, u64)], shown: &[(&str, String)]) -> Vec<String> {
        let mut truth = Truth { acked: 99, ..Truth::default() };
        for (number, (chat, token)) in said.iter().enumerate() {
            let token = Token(*token);
            let said = Said { number: number as u64, chat: (*chat).to_owned(), token };
            truth.said.insert(token, said);
        }
        for (chat, text) in shown {
            truth.shown.push(Shown {
                message: "m".into(),
                chat: (*chat).to_owned(),
                thread: None,
                text: text.clone(),
                choices: Vec::new(),
                edits: 0,
            });
        }
        truth.check().iter().map(ToString::to_string).collect()
    }

    fn whole(token: u64) -> String {
        echo(&Token(token).to_string(), 4)
    }

    fn half(token: u64) -> String {
        format!("echo: {} and so", Token(token))
    }

    #[test]
    fn answers_in_order_break_nothing() {
        assert!(
            check(
                &[("a", 1), ("b", 2), ("a", 3)],
                &[("a", whole(1)), ("a", whole(3)), ("b", whole(2)),]
            )
            .is_empty()
        );
    }

    #[test]
    fn a_missing_answer_is_a_loss() {
        assert_eq!(check(&[("a", 1)], &[]), ["tok0000001 in a (acknowledged) has no whole answer"]);
    }

    #[test]
    fn a_second_answer_has_to_be_marked() {
        let marked = format!("{MARKED}{}", whole(1));
        assert!(check(&[("a", 1)], &[("a", whole(1)), ("a", marked)]).is_empty());
        assert_eq!(
            check(&[("a", 1)], &[("a", whole(1)), ("a", whole(1))]),
            ["the answer to tok0000001 is in a twice, unmarked"]
        );
    }

    #[test]
    fn half_an_answer_needs_a_marked_whole_one_after_it() {
        let marked = format!("{MARKED}{}", whole(1));
        assert!(check(&[("a", 1)], &[("a", half(1)), ("a", marked)]).is_empty());
        let left = check(&[("a", 1)], &[("a", half(1)), ("a", whole(1))]);
        assert_eq!(left.len(), 1);
        assert!(left[0].starts_with("half an answer to tok0000001 stayed in a"), "{left:?}");
    }

    #[test]
    fn a_long_answer_may_end_in_its_next_part() {
        let text = whole(1);
        let (first, second) = text.split_at(text.len() - 18);
        let shown = [("a", first.to_owned()), ("a", second.trim_start().to_owned())];
        assert!(check(&[("a", 1)], &shown).is_empty(), "{shown:?}");
    }

    #[test]
    fn order_and_place_are_checked() {
        assert_eq!(
            check(&[("a", 1), ("a", 2)], &[("a", whole(2)), ("a", whole(1))]),
            ["in a, tok0000002 was answered before tok0000001"]
        );
        assert_eq!(
            check(&[("a", 1)], &[("b", whole(1)), ("a", whole(1))]),
            [
                "the answer to tok0000001 appeared in b",
                "the answer to tok0000001 is in a twice, unmarked",
            ]
        );
        assert_eq!(check(&[], &[("a", "hm".into())]), ["a got \"hm\" for no reason"]);
    }
}
