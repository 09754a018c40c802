//! What people send as one and platforms deliver in parts: albums, pictures one after another, texts
//! that are longer than a message may be. The first part waits for the rest, as long as its platform
//! takes to deliver it; everything else waits for nothing.

use std::collections::VecDeque;
use std::time::Duration;

use talaria_model::{Addressed, Inbound, InboundKind, MediaKind, Message, Seq, Timestamp};
use talaria_platform::Bursts;

use crate::fetching;
use crate::hearing::Listens;

/// The longest that a message waits for its other parts, however they drip in.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The most parts.
const MOST_PARTS: usize = 32;

/// Something that waits to be heard.
pub(crate) struct Heard {
    pub(crate) seq: Seq,
    pub(crate) inbound: Inbound,
    came: Timestamp,
    part: Part,
}

/// What something can be a part of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Nothing that goes on.
    Whole,
    /// An album.
    Album(String),
    /// Pictures.
    Picture,
    /// A text that may go on.
    Text,
}

/// What can be heard next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    /// So many from the first on, together.
    First(usize),
    /// Nothing before that much time has passed.
    In(Duration),
    /// Nothing before something else happens.
    Not,
}

impl Heard {
    pub(crate) fn new(seq: Seq, inbound: Inbound, bursts: &Bursts, came: Timestamp) -> Self {
        let part = part(&inbound, bursts);
        Self { seq, inbound, came, part }
    }

    fn message(&self) -> Option<&Message> {
        match &self.inbound.kind {
            InboundKind::Said(message) => Some(message),
            _ => None,
        }
    }

    /// Whether it is the next part of what this one is a part of.
    fn goes_on(&self, next: &Self) -> bool {
        let (Some(_), Some(message)) = (self.message(), next.message()) else { return false };
        let is_same = self.inbound.from == next.inbound.from
            && self.inbound.to == next.inbound.to
            && message.addressed == Addressed::ToUs;
        is_same
            && match (&self.part, &next.part) {
                (Part::Album(one), Part::Album(other)) => one == other,
                (Part::Picture, Part::Picture) => true,
                (Part::Text, Part::Text | Part::Whole) => {
                    message.files.is_empty() && message.media.is_empty() && !is_command(message)
                }
                _ => false,
            }
    }

    /// How much longer it waits for its next part. A clock that was set ends the wait.
    fn waits(&self, bursts: &Bursts, now: Timestamp) -> Duration {
        let most = match self.part {
            Part::Whole => Duration::ZERO,
            Part::Album(_) => bursts.album,
            Part::Picture => bursts.pictures,
            Part::Text => bursts.text,
        };
        if now < self.came { Duration::ZERO } else { most.saturating_sub(now.since(self.came)) }
    }
}

fn part(inbound: &Inbound, bursts: &Bursts) -> Part {
    let InboundKind::Said(message) = &inbound.kind else { return Part::Whole };
    if is_command(message) || message.addressed != Addressed::ToUs {
        return Part::Whole;
    }
    let is_picture = !message.media.is_empty()
        && message.media.iter().all(|media| media.kind == MediaKind::Photo);
    let may_go_on =
        bursts.split_at.is_some_and(|length| message.text.chars().count() >= length as usize);
    match &message.album {
        Some(album) if !bursts.album.is_zero() => Part::Album(album.clone()),
        _ if is_picture && !bursts.pictures.is_zero() => Part::Picture,
        _ if message.media.is_empty() && message.files.is_empty() && may_go_on => Part::Text,
        _ => Part::Whole,
    }
}

fn is_command(message: &Message) -> bool {
    message.text.starts_with('/') && message.forwarded.is_none()
}

/// What of this can be heard.
pub(crate) fn ready(
    waiting: &VecDeque<Heard>,
    bursts: &Bursts,
    listens: Listens,
    now: Timestamp,
) -> Ready {
    let Some(first) = waiting.front() else { return Ready::Not };
    let mut parts = 1;
    while parts < MOST_PARTS
        && let Some(next) = waiting.get(parts)
        && waiting[parts - 1].goes_on(next)
    {
        parts += 1;
    }
    // Something else from the same chat means that there is nothing more to come.
    let is_over = waiting.len() > parts || parts == MOST_PARTS;
    let left = if now < first.came {
        Duration::ZERO
    } else {
        LONGEST_WAIT.saturating_sub(now.since(first.came))
    };
    let wait = waiting[parts - 1].waits(bursts, now).min(left);
    // What was changed is taken along, so it has to be there, too.
    let is_taken = |(place, heard): (usize, &Heard)| {
        place < parts || waiting.iter().take(parts).any(|said| changes(heard, said))
    };
    let mut due =
        waiting.iter().enumerate().filter(|(_, heard)| fetching::is_due(&heard.inbound, listens));
    if due.any(is_taken) {
        Ready::Not
    } else if is_over || wait.is_zero() {
        Ready::First(parts)
    } else {
        Ready::In(wait)
    }
}

/// The first of what waits, and what was changed of it since.
pub(crate) fn take(waiting: &mut VecDeque<Heard>, parts: usize) -> Vec<(Seq, Inbound)> {
    let mut taken: Vec<Heard> = waiting.drain(..parts.min(waiting.len())).collect();
    let mut place = 0;
    while place < waiting.len() {
        if taken.iter().any(|said| changes(&waiting[place], said)) {
            taken.extend(waiting.remove(place));
        } else {
            place += 1;
        }
    }
    taken.into_iter().map(|heard| (heard.seq, heard.inbound)).collect()
}

fn changes(changed: &Heard, said: &Heard) -> bool {
    let InboundKind::Edited(edition) = &changed.inbound.kind else { return false };
    said.message().is_some_and(|message| message.id.is_some() && message.id == edition.id)
        && said.inbound.to.chat == changed.inbound.to.chat
        && said.inbound.from.is(&changed.inbound.from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::{
        AccountId, Address, Chat, ChatId, ChatKind, EventId, Media, MessageId, Owner, Sender,
        SenderId, Source,
    };

    const BURSTS: Bursts = Bursts {
        split_at: Some(10),
        text: Duration::from_millis(1000),
        album: Duration::from_millis(800),
        pictures: Duration::from_millis(500),
    };

    /// `who what`, where `what` is `photo`, `doc`, `album-…`, `edit`, `others`, or a text.
    fn heard(number: u64, at: i64, said: &str) -> Heard {
        let (who, what) = said.split_once(' ').expect("who and what");
        let (what, files) =
            what.strip_suffix(" fetched").map_or((what, true), |what| (what, false));
        let kind = if what == "doc" { MediaKind::Document } else { MediaKind::Photo };
        let is_file = what == "doc" || what == "photo" || what.starts_with("album");
        let owner = Owner::Sender;
        let media = Media { handle: "h".into(), kind, name: None, mime: None, size: None, owner };
        let message = Message {
            id: Some(MessageId::literal("m")),
            text: if is_file { String::new() } else { what.into() },
            media: if is_file { vec![media] } else { vec![] },
            album: what.starts_with("album").then(|| what.to_owned()),
            addressed: if what == "others" { Addressed::ToOthers } else { Addressed::ToUs },
            ..Message::default()
        };
        let mut inbound = Inbound {
            id: EventId::new(number.to_string()).expect("an id"),
            at: Timestamp::default(),
            from: Sender::new(SenderId::new(who).expect("a sender")),
            to: Address {
                account: AccountId::literal("main"),
                chat: Chat { id: ChatId::literal("c"), kind: ChatKind::Group },
                thread: None,
            },
            source: Source::default(),
            kind: match what {
                "edit" => InboundKind::Edited(message),
                _ => InboundKind::Said(message),
            },
        };
        let part = part(&inbound, &BURSTS);
        if let InboundKind::Said(message) = &mut inbound.kind
            && !files
        {
            message.media.clear();
        }
        Heard { seq: Seq(number), inbound, came: Timestamp::from_millis(at), part }
    }

    fn check(waiting: &[(i64, &str)], now: i64, expected: Ready) {
        let waiting: VecDeque<Heard> =
            (1..).zip(waiting).map(|(number, (at, said))| heard(number, *at, said)).collect();
        let ready = ready(&waiting, &BURSTS, Listens::Never, Timestamp::from_millis(now));
        assert_eq!(ready, expected);
    }

    const fn wait(millis: u64) -> Ready {
        Ready::In(Duration::from_millis(millis))
    }

    #[test]
    fn what_is_whole_waits_for_nothing() {
        check(&[], 0, Ready::Not);
        check(&[(0, "alice hello")], 0, Ready::First(1));
        check(&[(0, "alice hello"), (0, "alice again")], 0, Ready::First(1));
        check(&[(0, "alice /command that is long")], 0, Ready::First(1));
        check(&[(0, "alice edit")], 0, Ready::First(1));
        check(&[(0, "alice doc fetched")], 0, Ready::First(1));
    }

    #[test]
    fn a_part_waits_for_the_next_one_as_long_as_its_platform_takes() {
        let long = "alice 0123456789";
        check(&[(0, long)], 0, wait(1000));
        check(&[(0, long)], 999, wait(1));
        check(&[(0, long)], 1000, Ready::First(1));
        check(&[(0, long), (900, long)], 1000, wait(900));
        check(&[(0, long), (900, "alice rest")], 900, Ready::First(2));
        check(&[(0, long), (900, "bob rest")], 900, Ready::First(1));
        check(&[(0, long), (900, "alice /stop")], 900, Ready::First(1));
        check(&[(0, long), (900, "alice doc")], 900, Ready::First(1));
        check(&[(5000, long)], 0, Ready::First(1));
    }

    #[test]
    fn an_album_is_whole_when_something_else_comes_and_when_nothing_does() {
        let one = "alice album-1 fetched";
        check(&[(0, one), (100, one)], 100, wait(800));
        check(&[(0, one), (100, one)], 900, Ready::First(2));
        check(&[(0, one), (100, one), (200, "alice album-2 fetched")], 200, Ready::First(2));
        check(&[(0, one), (100, one), (200, "bob hello")], 200, Ready::First(2));
        check(&[(0, one), (100, "alice photo fetched")], 200, Ready::First(1));
        check(&[(0, "alice photo fetched"), (100, "alice photo fetched")], 100, wait(500));
    }

    #[test]
    fn parts_wait_for_the_files_of_all_of_them() {
        check(&[(0, "alice album-1 fetched"), (100, "alice album-1")], 9000, Ready::Not);
        check(&[(0, "alice doc"), (100, "alice hello")], 9000, Ready::Not);
    }

    #[test]
    fn parts_that_drip_in_do_not_wait_for_ever() {
        let parts: Vec<(i64, &str)> = (0..8).map(|n| (n * 700, "alice album-1 fetched")).collect();
        check(&parts[..7], 4200, wait(800));
        check(&parts, 4999, wait(1));
        check(&parts, 5000, Ready::First(8));
        let many = vec![(0, "alice photo fetched"); 40];
        check(&many, 0, Ready::First(MOST_PARTS));
    }

    #[test]
    fn what_was_changed_is_taken_with_what_it_changes() {
        let said = ["alice hello", "bob hm", "alice edit", "bob edit"];
        let mut waiting: VecDeque<Heard> =
            (1..).zip(said).map(|(number, said)| heard(number, 0, said)).collect();
        let taken: Vec<u64> = take(&mut waiting, 1).iter().map(|(seq, _)| seq.0).collect();
        assert_eq!(taken, [1, 3]);
        assert_eq!(waiting.iter().map(|heard| heard.seq.0).collect::<Vec<_>>(), [2, 4]);
    }
}
