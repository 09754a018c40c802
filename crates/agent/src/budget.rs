//! How much of a model's window a conversation may take, and what is summarised when it takes more.

use std::time::Duration;

use talaria_model::{Entry, EntryBody};

use crate::prompt::size;

/// Roughly how many bytes a token has. Fewer than most have, to stay clear of the end.
pub(crate) const BYTES_PER_TOKEN: u64 = 3;

/// What a model is taken to read when nobody knows. Most read more; one that reads less says so by
/// refusing, and then less is asked.
pub(crate) const UNKNOWN_WINDOW: u64 = 32_768;

/// After a summary could not be written, how long nobody tries again by himself.
pub(crate) const COOLDOWN: Duration = Duration::from_secs(600);

/// When a conversation is summarised, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Whether it is done without being asked.
    pub automatic: Automatic,
    /// How full the window may be, in percent of it.
    pub threshold: u8,
    /// How full it may be in the middle of a turn, before old results of tools are shortened.
    pub hard: u8,
    /// How much of the window the newest entries may take that are kept as they are, in percent.
    pub tail: u8,
    /// How many entries at the beginning are kept as they are.
    pub keep_first: usize,
    /// How many entries at the end are kept as they are, as far as `tail` allows.
    pub keep_last: usize,
    /// How many entries there may be, however short.
    pub most_entries: usize,
}

/// Whether something is done without being asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Automatic {
    /// It is.
    #[default]
    On,
    /// Only when somebody asks.
    Off,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            automatic: Automatic::On,
            threshold: 50,
            hard: 85,
            tail: 20,
            keep_first: 3,
            keep_last: 20,
            most_entries: 5000,
        }
    }
}

impl Budget {
    /// Whether a prompt of that size asks for a summary.
    pub(crate) fn is_full(&self, tokens: u64, entries: usize, window: u64) -> bool {
        tokens >= window * u64::from(self.threshold) / 100 || entries >= self.most_entries
    }

    /// Whether a turn has to be shortened in its middle.
    pub(crate) fn is_hard(&self, tokens: u64, window: u64) -> bool {
        tokens >= window * u64::from(self.hard) / 100
    }

    /// What a summary is to stand for, if there is anything. `history` is what stands in the prompt
    /// before the turn, and `ours` how many entries the turn has itself.
    pub(crate) fn stretch(&self, history: &[&Entry], ours: usize, window: u64) -> Option<Stretch> {
        let borders = borders(history);
        let is_border = |place: &usize| borders[*place];
        let earlier =
            history.iter().position(|entry| matches!(entry.body, EntryBody::Summary { .. }));
        let first = match earlier {
            Some(place) => place,
            None => (self.keep_first.min(history.len())..=history.len()).find(is_border)?,
        };
        let room = usize::try_from(window * BYTES_PER_TOKEN * u64::from(self.tail) / 100);
        let mut room = room.unwrap_or(usize::MAX);
        let most = self.keep_last.saturating_sub(ours);
        let newest = history.iter().rev().take(most).take_while(|entry| {
            let fits = size(entry) <= room;
            room = room.saturating_sub(size(entry));
            fits
        });
        let end = history.len() - newest.count();
        // The cut moves towards the beginning, so that an exchange stays whole.
        let end = (0..=end).rev().find(is_border)?;
        // A summary of a single entry would save nothing.
        (end > first + 1).then(|| {
            let after = match (earlier.map(|place| &history[place].body), first) {
                (Some(EntryBody::Summary { after, .. }), _) => *after,
                (_, 0) => 0,
                (_, first) => history[first - 1].number,
            };
            Stretch { first, end, after, upto: history[end - 1].number }
        })
    }
}

/// What a summary stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The place of its first entry, and of the first one after it.
    pub(crate) first: usize,
    pub(crate) end: usize,
    /// The number of the last entry before it.
    pub(crate) after: u32,
    /// The number of its last entry.
    pub(crate) upto: u32,
}

/// Before which entries a conversation may be cut, the end included: nowhere between a call and its
/// result, nor between a question and the first step towards its answer.
fn borders(entries: &[&Entry]) -> Vec<bool> {
    let mut waiting: Vec<_> = Vec::new();
    let mut borders = Vec::with_capacity(entries.len() + 1);
    let mut before_said = false;
    for entry in entries {
        let said = matches!(entry.body, EntryBody::Said { .. });
        let returned = matches!(entry.body, EntryBody::Returned { .. });
        // A call that never got its result is closed by whatever comes next.
        borders.push(said || !returned && waiting.is_empty() && !before_said);
        before_said = said;
        match &entry.body {
            EntryBody::Answered { calls, .. } => {
                waiting = calls.iter().map(|call| &call.id).collect();
            }
            EntryBody::Returned { call, .. } => waiting.retain(|id| *id != call),
            EntryBody::Said { .. } | EntryBody::Summary { .. } => waiting.clear(),
            EntryBody::Aside { .. } | EntryBody::Noticed { .. } => {}
        }
    }
    borders.push(waiting.is_empty());
    borders
}

/// About how many tokens the next prompt has: as the provider counted the last one, and an estimate
/// for what came since. `rest` is what stands before the entries, in bytes.
pub(crate) fn tokens(entries: &[&Entry], rest: usize) -> u64 {
    let estimate = |bytes: usize| bytes as u64 / BYTES_PER_TOKEN;
    // What was counted before a summary took the place of its entries no longer holds.
    let newest_summary =
        entries.iter().filter(|entry| matches!(entry.body, EntryBody::Summary { .. }));
    let since = newest_summary.map(|entry| entry.number).max().unwrap_or(0);
    let counted = entries.iter().enumerate().rev().find_map(|(place, entry)| match &entry.body {
        EntryBody::Answered { usage, .. } if usage.prompt() > 0 && entry.number > since => {
            Some((place, usage.counted()))
        }
        _ => None,
    });
    match counted {
        Some((place, counted)) => {
            counted + estimate(entries[place + 1..].iter().map(|entry| size(entry)).sum())
        }
        None => estimate(rest + entries.iter().map(|entry| size(entry)).sum::<usize>()),
    }
}
