//! The people: one in each conversation, who says a few things and goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use talaria_testkit::Token;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::places::{Conversation, Travel, Vendors};
use crate::soak::book::{Book, Kind, Said};
use crate::soak::model::{AT_LENGTH, SLOWLY, STEADILY, WITH_A_TOOL};
use crate::soak::protocol::Moment;

/// How many things one person says, besides the last.
const SAYS: usize = 3;

/// How often somebody looks whether they were heard.
const GLANCE: Duration = Duration::from_millis(20);

/// In this part of the time everybody begins.
const BEGIN: f64 = 0.4;

/// Everybody who talks. Dropping it silences them.
pub(crate) struct People {
    talking: JoinSet<()>,
    everybody: Vec<Conversation>,
    begun: Arc<AtomicUsize>,
    vendors: Arc<Vendors>,
    book: Book,
}

impl People {
    /// Lets so many people talk for so long.
    pub(crate) fn gather(
        vendors: &Arc<Vendors>,
        book: &Book,
        count: usize,
        time: Duration,
        seed: u64,
    ) -> Self {
        let everybody: Vec<_> = (0..count).map(|number| vendors.conversation(number)).collect();
        let begun = Arc::<AtomicUsize>::default();
        let mut talking = JoinSet::new();
        for (number, place) in everybody.iter().enumerate() {
            let person = Person {
                place: place.clone(),
                vendors: vendors.clone(),
                book: book.clone(),
                dice: StdRng::seed_from_u64(seed ^ (number as u64) << 8),
            };
            let begun = begun.clone();
            talking.spawn(async move { person.talk(time, &begun).await });
        }
        Self { talking, everybody, begun, vendors: vendors.clone(), book: book.clone() }
    }

    /// Says whether everybody has said something.
    pub(crate) fn all_have_begun(&self) -> impl Fn() -> bool + Send + 'static {
        let (begun, count) = (self.begun.clone(), self.everybody.len());
        move || begun.load(Ordering::Relaxed) >= count
    }

    /// Waits until everybody has said what they wanted to.
    pub(crate) async fn silence(&mut self) {
        while self.talking.join_next().await.is_some() {}
    }

    /// Lets everybody say one more thing. What is said in a conversation is answered in order, so
    /// nothing that was still to come can come after its answer.
    pub(crate) async fn conclude(&self) -> Vec<Token> {
        let mut last = Vec::new();
        for place in &self.everybody {
            while !self.vendors.is_heard(place) {
                tokio::time::sleep(GLANCE).await;
            }
            last.push(say(&self.vendors, &self.book, place, "and finally", Travel::Straight));
        }
        last
    }
}

/// Somebody says something with a token behind it.
pub(crate) fn say(
    vendors: &Vendors,
    book: &Book,
    place: &Conversation,
    text: &str,
    travel: Travel,
) -> Token {
    let at = book.now();
    let token = book.pages().mint();
    let event = vendors.say(place, &format!("{text} {token}"), travel);
    let (chat, person) = (place.chat.clone(), place.person.clone());
    let said = Said { account: place.account, chat, person, event, kind: Kind::Talk, at };
    book.pages().said.insert(token, said);
    token
}

struct Person {
    place: Conversation,
    vendors: Arc<Vendors>,
    book: Book,
    dice: StdRng,
}

impl Person {
    async fn talk(mut self, time: Duration, begun: &AtomicUsize) {
        let start = Instant::now();
        let first = time.mul_f64(self.dice.random_range(0.0..BEGIN));
        let mut moments: Vec<Duration> = (1..SAYS)
            .map(|_| first + (time - first).mul_f64(self.dice.random_range(0.0..1.0)))
            .collect();
        moments.sort();
        // Now and then somebody says two things in one breath.
        if self.dice.random_range(0..6) == 0 {
            moments[0] = first + GLANCE;
        }
        for (nth, moment) in std::iter::once(first).chain(moments).enumerate() {
            tokio::time::sleep_until(start + moment).await;
            while !self.vendors.is_heard(&self.place) {
                tokio::time::sleep(GLANCE).await;
            }
            let text = match self.dice.random_range(0..20) {
                0..7 => STEADILY,
                7..9 => AT_LENGTH,
                9..11 => WITH_A_TOOL,
                11..13 => SLOWLY,
                _ => "hello",
            };
            let travel = match self.dice.random_range(0..20) {
                0 => Travel::Twice,
                1 => Travel::Overtaken,
                _ => Travel::Straight,
            };
            say(&self.vendors, &self.book, &self.place, text, travel);
            self.book.signal(Moment::Bursting);
            if nth == 0 {
                begun.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
