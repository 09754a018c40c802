//! Which entries of a life an agent reads: the newest summary stands for what it sums up.

use talaria_model::{Entry, EntryBody};

/// Walks over the entries of a life that stand, from the newest back. Every store gathers history by
/// this, so that all leave out the same.
#[derive(Debug)]
pub struct History {
    limit: usize,
    summary: Option<Entry>,
    tail: Vec<Entry>,
}

/// Whether to go on with the entry before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walk {
    /// Go on.
    On,
    /// Nothing further back is read, but for what a summary left as it was.
    Stop,
}

impl History {
    /// At most so many entries, the summary among them.
    pub fn new(limit: usize) -> Self {
        Self { limit, summary: None, tail: Vec::new() }
    }

    /// Takes the entry before the last one taken.
    pub fn take(&mut self, entry: Entry) -> Walk {
        match (&entry.body, &self.summary) {
            (EntryBody::Summary { .. }, None) => self.summary = Some(entry),
            (EntryBody::Summary { .. }, Some(_)) => {}
            _ if entry.number <= self.upto() => return Walk::Stop,
            _ if self.tail.len() < self.limit => self.tail.push(entry),
            _ => {}
        }
        // A summary may stand further back than the entries that are wanted.
        if self.tail.len() >= self.limit && self.summary.is_some() { Walk::Stop } else { Walk::On }
    }

    /// Whether as many entries were taken as are wanted, and only a summary may be missing.
    pub fn wants_only_a_summary(&self) -> bool {
        self.tail.len() >= self.limit && self.summary.is_none()
    }

    fn upto(&self) -> u32 {
        match self.summary.as_ref().map(|entry| &entry.body) {
            Some(EntryBody::Summary { upto, .. }) => *upto,
            _ => 0,
        }
    }

    /// The last of the first entries that the summary left as they were; zero for none.
    pub fn after(&self) -> u32 {
        match self.summary.as_ref().map(|entry| &entry.body) {
            Some(EntryBody::Summary { after, .. }) => *after,
            _ => 0,
        }
    }

    /// What an agent reads, oldest first. `head` gives the first entries of the life, the oldest
    /// first; only those up to `after` are taken.
    pub fn finish<E>(
        mut self,
        head: impl IntoIterator<Item = Result<Entry, E>>,
    ) -> Result<Vec<Entry>, E> {
        self.tail.reverse();
        let after = self.after();
        let Some(summary) = self.summary else { return Ok(self.tail) };
        let mut entries = Vec::new();
        for entry in head {
            let entry = entry?;
            if entry.number > after || entries.len() + 1 >= self.limit {
                break;
            }
            if !matches!(entry.body, EntryBody::Summary { .. }) {
                entries.push(entry);
            }
        }
        if self.limit > 0 {
            entries.push(summary);
        }
        let room = self.limit - entries.len();
        self.tail.drain(..self.tail.len().saturating_sub(room));
        entries.extend(self.tail);
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use talaria_model::{Cost, Sender, SenderId, Timestamp, Usage};

    fn said(number: u32) -> Entry {
        let body = EntryBody::Said {
            from: Sender::new(SenderId::literal("alice")),
            text: number.to_string(),
            files: Vec::new(),
            heard: None,
            message: None,
            forwarded: None,
        };
        Entry {
            number,
            at: Timestamp::default(),
            turn: None,
            body,
            because: None,
            about: None,
            resumed: None,
        }
    }

    fn summary(number: u32, after: u32, upto: u32) -> Entry {
        let (usage, cost) = (Usage::default(), Cost::default());
        let body = EntryBody::Summary { after, upto, text: "in short".into(), usage, cost };
        Entry { body, ..said(number) }
    }

    fn numbers(entries: &[Entry], limit: usize) -> Vec<u32> {
        let mut history = History::new(limit);
        for entry in entries.iter().rev() {
            if history.take(entry.clone()) == Walk::Stop {
                break;
            }
        }
        let head = entries.iter().cloned().map(Ok::<_, std::convert::Infallible>);
        history.finish(head).unwrap().iter().map(|entry| entry.number).collect()
    }

    #[test]
    fn a_summary_stands_where_what_it_sums_up_stood() {
        let mut entries: Vec<Entry> = (1..=8).map(said).collect();
        assert_eq!(numbers(&entries, 10), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(numbers(&entries, 3), [6, 7, 8]);
        entries.push(summary(9, 2, 6));
        assert_eq!(numbers(&entries, 10), [1, 2, 9, 7, 8]);
        entries.extend([said(10), said(11)]);
        assert_eq!(numbers(&entries, 10), [1, 2, 9, 7, 8, 10, 11]);
        assert_eq!(numbers(&entries, 5), [1, 2, 9, 10, 11]);
        assert_eq!(numbers(&entries, 2), [1, 9]);
        assert_eq!(numbers(&entries, 1), [9]);
        assert_eq!(numbers(&entries, 0), [0; 0]);
        entries.push(summary(12, 0, 10));
        assert_eq!(numbers(&entries, 10), [12, 11], "the newest summary counts");
    }

    proptest! {
        #[test]
        fn history_is_bounded_and_ends_with_the_newest(
            (many, at) in (1..40u32, 1..40u32),
            (after, upto) in (0..10u32, 0..40u32),
            limit in 0..50usize,
        ) {
            let entry = |n| if n == at { summary(n, after, upto.min(n - 1)) } else { said(n) };
            let entries: Vec<Entry> = (1..=many).map(entry).collect();
            let numbers = numbers(&entries, limit);
            prop_assert!(numbers.len() <= limit);
            if at <= many && limit > 0 {
                prop_assert!(numbers.contains(&at), "a summary is never lost");
            }
        }
    }
}
