//! How events get from a vendor to the gateway: five ways, each with its own idea of what has been
//! heard and of what is told again.

use std::time::Duration;

use futures::{StreamExt, stream};
use talaria_clock::{Clock, SystemClock};
use talaria_model::{Inbound, Timestamp};
use talaria_platform::{Ack, Arrival, Arrivals, Batch, Committed, Cursor, LinkError, Verdict};

use super::{HandedOver, Mail, Reach, Truth, Vendor};
use crate::sim::points::Alive;

/// How the gateway hears from a vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hears {
    /// By asking for everything after a token. The vendor forgets nothing.
    Stream,
    /// By requests of the vendor, each of which waits for its answer for a few seconds and is repeated
    /// later when there is none.
    Requests,
    /// By long polls with an offset. Asking for more confirms what came before; the vendor keeps the
    /// rest for a day and refuses to be asked by two.
    Poll,
    /// By envelopes on a socket, each to be acknowledged. What is not, comes again on the next
    /// connection or after a while.
    Envelopes,
    /// By numbered events on a socket, none of them acknowledged. A session can be resumed behind a
    /// number; when it is no longer valid, the history has what was missed, and a little more.
    Sequence,
}

/// How long a request of the vendor waits for its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// After how long an envelope that was not acknowledged comes again.
const ENVELOPE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a poll stays open when nothing happens.
const POLL: Duration = Duration::from_secs(30);

/// How much the history tells besides what was missed.
const OVERLAP: usize = 3;

/// The gateway's side of a connection.
pub(super) struct Client {
    /// Which connection.
    pub(super) connection: u64,
    /// The number of the next event, where the gateway keeps it.
    position: usize,
    /// The session that is resumed or has begun.
    session: u64,
    /// Whether it was told where it begins.
    greeted: bool,
    seat: Seat,
}

/// A listener's place at a vendor, who counts how many there are at once.
struct Seat {
    vendor: Vendor,
    number: u64,
}

impl Seat {
    fn take(vendor: &Vendor, truth: &mut Truth) -> Self {
        truth.listeners += 1;
        truth.listening += 1;
        truth.most_listening = truth.most_listening.max(truth.listening);
        Self { vendor: vendor.clone(), number: truth.listeners }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.vendor.lock().listening -= 1;
    }
}

/// What a listener gets.
enum Heard {
    These(Vec<usize>),
    Beginning,
    Nothing,
    Broken(LinkError),
    Wait(Option<Duration>),
}

impl Vendor {
    pub(super) fn begin_listening(&self, cursor: Option<&str>) -> Client {
        let now = self.0.ground.time.now();
        let mut truth = self.lock();
        truth.tried_in_vain(self.0.hears, now);
        let mut client = Client {
            connection: truth.connection,
            position: 0,
            session: truth.sequence,
            greeted: false,
            seat: Seat::take(self, &mut truth),
        };
        let number = |text: &str| text.parse::<usize>().expect("our own cursor");
        match (self.0.hears, cursor) {
            (Hears::Stream | Hears::Poll, Some(cursor)) => {
                client.position = number(cursor);
                client.greeted = true;
            }
            (Hears::Sequence, Some(cursor)) => {
                let (session, position) = cursor.split_once(':').expect("our own cursor");
                let is_valid = session.parse() == Ok(truth.sequence);
                let overlap = if is_valid { 0 } else { OVERLAP };
                client.position = number(position).saturating_sub(overlap);
                client.greeted = true;
            }
            // Who comes for the first time hears what happens from here on.
            (Hears::Sequence, None) => {
                client.position = truth.mail.len();
                if !truth.introduced {
                    truth.mail.iter_mut().for_each(|mail| mail.gone |= !mail.acknowledged);
                }
            }
            // Who has been here before and does not know where it was is shown the newest only.
            (Hears::Stream, None) if truth.introduced => {
                client.position = truth.mail.len().saturating_sub(2);
                client.greeted = true;
            }
            (Hears::Requests | Hears::Envelopes, _) | (Hears::Stream | Hears::Poll, None) => {
                client.greeted = true;
            }
        }
        client
    }

    pub(super) fn arrivals(self, client: Client) -> Arrivals {
        stream::unfold((self, client), |(vendor, mut client)| async move {
            let mut changed = vendor.0.changed.subscribe();
            loop {
                changed.mark_unchanged();
                let heard = vendor.next(&client);
                let item = match heard {
                    Heard::These(places) => {
                        Ok(Arrival::Batch(vendor.hand_over(&mut client, &places)))
                    }
                    Heard::Beginning => {
                        client.greeted = true;
                        let cursor = vendor.cursor(&client);
                        Ok(Arrival::Batch(Batch { events: vec![], cursor, ack: Ack::unneeded() }))
                    }
                    Heard::Nothing => Ok(Arrival::Alive),
                    Heard::Broken(error) => Err(error),
                    Heard::Wait(time) => {
                        let time = time.unwrap_or(Duration::from_secs(365 * 24 * 60 * 60));
                        tokio::select! {
                            biased;
                            changed = changed.changed() => changed.expect("the vendor is here"),
                            () = SystemClock.sleep(time) => {
                                if vendor.0.hears == Hears::Poll && time == POLL {
                                    return Some((Ok(Arrival::Alive), (vendor, client)));
                                }
                            }
                        }
                        continue;
                    }
                };
                return Some((item, (vendor, client)));
            }
        })
        .boxed()
    }

    fn next(&self, client: &Client) -> Heard {
        if self.0.ground.points.alive() == Alive::No {
            return Heard::Wait(None);
        }
        let now = self.0.ground.time.now();
        let hears = self.0.hears;
        let mut truth = self.lock();
        if truth.connection != client.connection {
            let reason = "hung up".to_owned();
            return Heard::Broken(truth.lost.take().unwrap_or(LinkError::Lost { reason }));
        }
        match truth.reach {
            Reach::Open => {}
            Reach::Refused => {
                return Heard::Broken(LinkError::Lost { reason: "no route".into() });
            }
            Reach::Silent => return Heard::Wait(None),
        }
        if truth.ignored >= client.seat.number {
            return Heard::Wait(None);
        }
        if std::mem::take(&mut truth.panics_on_next_arrival) {
            drop(truth);
            panic!("the test says so");
        }
        if !client.greeted {
            return Heard::Beginning;
        }
        if hears == Hears::Poll && truth.foreign_until.is_some_and(|until| until > now) {
            let (problem, hint) = ("somebody else polls".to_owned(), "stop it".to_owned());
            return Heard::Broken(LinkError::Conflict { problem, hint });
        }
        match hears {
            Hears::Stream | Hears::Poll | Hears::Sequence => {
                truth.introduced |= hears == Hears::Sequence;
                // Asking for what comes next says that what came before is safe.
                if truth.is_news(client.position) {
                    let before = client.position;
                    let account = &self.0.account;
                    let points = &self.0.ground.points;
                    if points.reach(format_args!("before {account} hears of {before}")) == Alive::No
                    {
                        return Heard::Wait(None);
                    }
                    truth.confirm(client.position);
                    if points.reach(format_args!("after {account} heard of {before}")) == Alive::No
                    {
                        return Heard::Wait(None);
                    }
                    drop(truth);
                    self.bump();
                    truth = self.lock();
                }
                truth.fetched(hears, client.position, now)
            }
            Hears::Requests | Hears::Envelopes => truth.pushed(hears, client.connection, now),
        }
    }

    fn cursor(&self, client: &Client) -> Option<Cursor> {
        match self.0.hears {
            Hears::Stream | Hears::Poll => Some(Cursor(client.position.to_string())),
            Hears::Sequence => Some(Cursor(format!("{}:{}", client.session, client.position))),
            Hears::Requests | Hears::Envelopes => None,
        }
    }

    fn hand_over(&self, client: &mut Client, places: &[usize]) -> Batch {
        let now = self.0.ground.time.now();
        let mut truth = self.lock();
        let events: Vec<Inbound> =
            places.iter().map(|place| truth.happened[*place].clone()).collect();
        let ids = events.iter().map(|event| event.id.clone()).collect::<Vec<_>>();
        for place in places {
            truth.mail[*place].handed = Some((client.connection, now));
        }
        let batch = truth.batches.len();
        truth.batches.push(HandedOver { events: ids, verdicts: None });
        drop(truth);
        if let Some(last) = places.last() {
            client.position = client.position.max(last + 1);
        }
        let numbers = places.iter().map(|place| place + 1).collect::<Vec<_>>();
        self.0.ground.log.note(format_args!("{} hands over {numbers:?}", self.0.account));
        let (told, places) = (self.clone(), places.to_vec());
        let ack =
            Ack::with(move |Committed(verdicts)| told.acknowledged(batch, &places, now, verdicts));
        Batch { events, cursor: self.cursor(client), ack }
    }

    fn acknowledged(
        &self,
        batch: usize,
        places: &[usize],
        handed: Timestamp,
        verdicts: Vec<Verdict>,
    ) {
        let (points, account) = (&self.0.ground.points, &self.0.account);
        if points.reach(format_args!("before {account} is told of {batch}")) == Alive::No {
            return;
        }
        let now = self.0.ground.time.now();
        let mut truth = self.lock();
        truth.batches[batch].verdicts = Some(verdicts);
        let counts = match self.0.hears {
            Hears::Stream | Hears::Envelopes => true,
            // Too late: the vendor does not wait any more.
            Hears::Requests => now.since(handed) < REQUEST_TIMEOUT,
            Hears::Poll | Hears::Sequence => false,
        };
        let deaf = truth.habits.deaf;
        if counts && !truth.one_in(deaf) {
            for place in places {
                truth.mail[*place].acknowledged = true;
                truth.mail[*place].gone = false;
            }
        }
        drop(truth);
        points.reach(format_args!("after {account} is told of {batch}"));
        self.bump();
    }
}

impl Truth {
    /// The next events behind a position that the gateway keeps.
    fn fetched(&mut self, hears: Hears, position: usize, now: Timestamp) -> Heard {
        let batch = self.habits.batch.max(1);
        if hears == Hears::Poll {
            let retention = self.habits.retention;
            let forgets = |mail: &Mail| !mail.acknowledged && now.since(mail.at) > retention;
            self.mail.iter_mut().filter(|mail| forgets(mail)).for_each(|mail| mail.gone = true);
        }
        let is_there = |place: &usize| hears != Hears::Poll || !self.mail[*place].gone;
        let places: Vec<usize> = (position..self.mail.len()).filter(is_there).take(batch).collect();
        match (places.is_empty(), hears) {
            (false, _) => Heard::These(places),
            (true, Hears::Poll) => Heard::Wait(Some(POLL)),
            (true, _) => Heard::Wait(None),
        }
    }

    /// Whether it is news to the vendor that everything before this is safe.
    fn is_news(&self, position: usize) -> bool {
        self.mail[..position.min(self.mail.len())]
            .iter()
            .any(|mail| !mail.acknowledged && !mail.gone)
    }

    fn confirm(&mut self, position: usize) {
        self.introduced = true;
        let end = position.min(self.mail.len());
        for mail in self.mail[..end].iter_mut().filter(|mail| !mail.gone) {
            mail.acknowledged = true;
        }
    }

    /// The next event that the vendor wants to tell by itself.
    fn pushed(&mut self, hears: Hears, connection: u64, now: Timestamp) -> Heard {
        let mut due = Vec::new();
        let mut next = None;
        for place in 0..self.mail.len() {
            let (acknowledged, gone) = (self.mail[place].acknowledged, self.mail[place].gone);
            let once_more = acknowledged && !self.mail[place].considered && {
                self.mail[place].considered = true;
                let repeats = self.habits.repeats;
                self.one_in(repeats)
            };
            if gone || (acknowledged && !once_more) {
                continue;
            }
            let at = self.mail[place].due_at(hears, connection);
            if once_more || at <= now {
                due.push(place);
            } else {
                next = Some(next.map_or(at, |next: Timestamp| next.min(at)));
            }
        }
        let pick = match self.habits.reorders {
            true if due.len() > 1 => {
                let most = due.len().min(4) as u64;
                self.dice.as_mut().map_or(0, |dice| dice.below(most) as usize)
            }
            _ => 0,
        };
        let Some(place) = due.get(pick).copied() else {
            return Heard::Wait(next.map(|at| at.since(now)));
        };
        let patience = self.habits.patience;
        let mail = &mut self.mail[place];
        if hears == Hears::Requests && !mail.acknowledged {
            mail.due = now + REQUEST_TIMEOUT + pause(mail.tries);
            mail.tries += 1;
            if mail.tries > patience.saturating_add(1) {
                mail.gone = true;
                return Heard::Nothing;
            }
        }
        Heard::These(vec![place])
    }

    /// Nobody listened for a while: requests went out all the same.
    pub(super) fn tried_in_vain(&mut self, hears: Hears, now: Timestamp) {
        if hears != Hears::Requests {
            return;
        }
        let patience = self.habits.patience;
        for mail in self.mail.iter_mut().filter(|mail| !mail.acknowledged && !mail.gone) {
            while mail.due < now {
                mail.due = mail.due + REQUEST_TIMEOUT + pause(mail.tries);
                mail.tries += 1;
                mail.gone = mail.tries > patience.saturating_add(1);
                if mail.gone {
                    break;
                }
            }
        }
    }
}

impl Mail {
    fn due_at(&self, hears: Hears, connection: u64) -> Timestamp {
        match (hears, self.handed) {
            (Hears::Requests, _) => self.due,
            (_, Some((on, at))) if on == connection => at + ENVELOPE_TIMEOUT,
            _ => self.at,
        }
    }
}

/// How long the vendor waits before it tells again: at once, then after one minute, five, and at
/// most an hour.
fn pause(tries: u32) -> Duration {
    let minutes = match tries {
        0 => 0,
        1 => 1,
        2 => 5,
        3 => 20,
        _ => 60,
    };
    Duration::from_secs(60 * minutes)
}
