//! How much may be spent in a day, by whom, and what is left of it.
//!
//! Pure: what was spent is an argument. A budget that says nothing about something does not limit it.

use std::fmt;

use jiff::tz::TimeZone;
use talaria_model::{AccountId, ChatId, Cost, SenderId, Timestamp, Usage};

use crate::reply::count;

/// What may be spent in a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    /// Messages that are answered.
    pub messages: Option<u64>,
    /// Tokens that a model reads and writes.
    pub tokens: Option<u64>,
    /// Money, in millionths of a US dollar.
    pub micros: Option<u64>,
}

/// What was spent in a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Messages that were answered, or begun to be.
    pub messages: u64,
    /// Tokens that a model read and wrote.
    pub tokens: u64,
    /// Money, in millionths of a US dollar, as far as prices are known.
    pub micros: u64,
}

impl Spent {
    /// What a model reports to have used.
    pub const fn of(usage: &Usage, cost: Cost) -> Self {
        Self { messages: 0, tokens: usage.total(), micros: cost.micros }
    }

    /// So many messages.
    pub const fn messages(messages: u64) -> Self {
        Self { messages, tokens: 0, micros: 0 }
    }

    /// Whether it is nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.messages = self.messages.saturating_add(other.messages);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.micros = self.micros.saturating_add(other.micros);
    }
}

/// Who spends. A person spends with all their identities together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Payer {
    /// Somebody whom the operator knows by name.
    Person(String),
    /// Somebody else, on an account.
    Sender(AccountId, SenderId),
    /// All who write in a chat.
    Chat(AccountId, ChatId),
}

impl fmt::Display for Payer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person(name) => f.write_str(name),
            Self::Sender(account, sender) => write!(f, "{account}/{sender}"),
            Self::Chat(account, chat) => write!(f, "{account}/{chat}"),
        }
    }
}

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i32);

impl Day {
    /// The day that it is somewhere.
    pub fn of(now: Timestamp, zone: &TimeZone) -> Self {
        let date = instant(now).to_zoned(zone.clone()).date();
        let since = date.since(EPOCH).map(|span| span.get_days()).unwrap_or(0);
        Self(since)
    }

    /// So many days after the first of January 1970.
    pub const fn numbered(number: i32) -> Self {
        Self(number)
    }

    /// How many days it is after the first of January 1970.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// So many days earlier.
    pub const fn before(self, days: i32) -> Self {
        Self(self.0.saturating_sub(days))
    }
}

const EPOCH: jiff::civil::Date = jiff::civil::date(1970, 1, 1);

fn instant(at: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or_default()
}

/// When the next day begins, as the clocks there show it.
pub fn begins_anew(now: Timestamp, zone: &TimeZone) -> String {
    let here = instant(now).to_zoned(zone.clone());
    match here.tomorrow().and_then(|tomorrow| tomorrow.start_of_day()) {
        Ok(midnight) => midnight.strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => "the end of time".to_owned(),
    }
}

/// What there must be something left of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Everything: messages are about to be answered.
    Begin,
    /// What an answer takes. Its messages were counted when it began.
    GoOn,
}

/// Whose budget it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetOf {
    /// That of the one who is answered.
    Own,
    /// That of the chat.
    Chat,
}

/// A budget of which nothing is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedUp {
    what: Item,
    limit: u64,
    spent: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Messages,
    Tokens,
    Money,
}

impl Item {
    fn amount(self, amount: u64) -> String {
        match self {
            Self::Messages => amount.to_string(),
            Self::Tokens => count(amount),
            Self::Money => Cost::known(amount).to_string(),
        }
    }

    fn noun(self, amount: u64) -> &'static str {
        match (self, amount) {
            (Self::Messages, 1) => " message",
            (Self::Messages, _) => " messages",
            (Self::Tokens, 1) => " token",
            (Self::Tokens, _) => " tokens",
            (Self::Money, _) => "",
        }
    }
}

impl Budget {
    /// No limit.
    pub const NONE: Self = Self { messages: None, tokens: None, micros: None };

    /// Nothing at all may be spent.
    pub const NOTHING: Self = Self { messages: Some(0), tokens: Some(0), micros: Some(0) };

    /// Whether it limits nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    fn items(&self, spent: &Spent) -> impl Iterator<Item = UsedUp> + use<> {
        let items = [
            (Item::Messages, self.messages, spent.messages),
            (Item::Tokens, self.tokens, spent.tokens),
            (Item::Money, self.micros, spent.micros),
        ];
        let limited = |(what, limit, spent): (Item, Option<u64>, u64)| {
            limit.map(|limit| UsedUp { what, limit, spent })
        };
        items.into_iter().filter_map(limited)
    }

    /// What of it is used up, if nothing is left of something that is needed.
    pub fn used_up(&self, spent: &Spent, need: Need) -> Option<UsedUp> {
        let is_needed = |item: &UsedUp| need == Need::Begin || item.what != Item::Messages;
        self.items(spent).filter(is_needed).find(|item| item.spent >= item.limit)
    }

    /// What is left of it, as people are told. Nothing where it limits nothing.
    pub fn left(&self, spent: &Spent) -> Option<String> {
        let told = |UsedUp { what, limit, spent }| {
            let left = what.amount(limit.saturating_sub(spent));
            format!("{left} of {}{}", what.amount(limit), what.noun(limit))
        };
        let items: Vec<String> = self.items(spent).map(told).collect();
        (!items.is_empty()).then(|| items.join(", "))
    }

    /// All of it, as people are told.
    pub fn told(&self) -> Option<String> {
        let told =
            |UsedUp { what, limit, .. }| format!("{}{}", what.amount(limit), what.noun(limit));
        let items: Vec<String> = self.items(&Spent::default()).map(told).collect();
        (!items.is_empty()).then(|| items.join(", "))
    }
}

impl Spent {
    /// As people are told.
    pub fn told(&self) -> String {
        let items = [(Item::Messages, self.messages), (Item::Tokens, self.tokens)];
        let counted = items.map(|(what, spent)| what.amount(spent) + what.noun(spent));
        format!("{}, {}", counted.join(", "), Item::Money.amount(self.micros))
    }
}

impl UsedUp {
    /// What the person is told: which budget, how much, and when it begins anew.
    pub fn sentence(&self, of: BudgetOf, anew: &str) -> String {
        let UsedUp { what, limit, spent } = *self;
        let whose = match of {
            BudgetOf::Own => "Your",
            BudgetOf::Chat => "This chat's",
        };
        format!(
            "{whose} budget of {}{} a day is used up: {} today. It begins anew on {anew}.",
            what.amount(limit),
            what.noun(limit),
            what.amount(spent),
        )
    }
}

/// What applies to those for whom no role says anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budgets {
    /// To whoever was named: in the list of people, on a list, by a role of the platform.
    pub person: Budget,
    /// To whoever came in with everybody, or by pairing.
    pub guest: Budget,
    /// To a chat, whoever writes in it.
    pub chat: Budget,
}

/// What limits a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The budget of the one who is answered.
    pub own: Budget,
    /// The budget of the chat.
    pub chat: Budget,
}

impl Bounds {
    /// No limit.
    pub const NONE: Self = Self { own: Budget::NONE, chat: Budget::NONE };

    /// Nothing at all may be spent.
    pub const NOTHING: Self = Self { own: Budget::NOTHING, chat: Budget::NOTHING };

    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn budget(messages: Option<u64>, tokens: Option<u64>, micros: Option<u64>) -> Budget {
        Budget { messages, tokens, micros }
    }

    fn spent(messages: u64, tokens: u64, micros: u64) -> Spent {
        Spent { messages, tokens, micros }
    }

    #[test]
    fn a_budget_is_used_up_when_nothing_of_it_is_left() {
        use Need::{Begin, GoOn};
        let all = budget(Some(20), Some(50_000), Some(1_500_000));
        for (budget, spent, need, expected) in [
            (Budget::NONE, spent(99, 99, 99), Begin, None),
            (all, spent(19, 49_999, 1_499_999), Begin, None),
            (all, spent(20, 0, 0), Begin, Some("20 messages a day is used up: 20 today")),
            (all, spent(20, 0, 0), GoOn, None),
            (all, spent(0, 50_000, 0), Begin, Some("50.0k tokens a day is used up: 50.0k today")),
            (all, spent(0, 51_200, 0), GoOn, Some("50.0k tokens a day is used up: 51.2k today")),
            (all, spent(0, 0, 1_500_000), GoOn, Some("$1.50 a day is used up: $1.50 today")),
            (budget(Some(1), None, None), spent(1, 9, 9), Begin, Some("1 message a day")),
            (budget(Some(0), None, None), spent(0, 0, 0), Begin, Some("0 messages a day")),
        ] {
            let told =
                budget.used_up(&spent, need).map(|used| used.sentence(BudgetOf::Own, "later"));
            match (&told, expected) {
                (None, None) => {}
                (Some(told), Some(expected)) => {
                    assert!(told.contains(expected), "{told}");
                    assert!(told.starts_with("Your budget of "), "{told}");
                    assert!(told.ends_with("It begins anew on later."), "{told}");
                }
                _ => panic!("{budget:?} {spent:?} {need:?}: {told:?}"),
            }
        }
        let chats = all.used_up(&spent(20, 0, 0), Begin).unwrap().sentence(BudgetOf::Chat, "later");
        assert!(chats.starts_with("This chat's budget"), "{chats}");
    }

    #[test]
    fn what_is_left_is_told_of_what_is_limited() {
        let some = budget(Some(20), None, Some(1_000_000));
        assert_eq!(
            some.left(&spent(8, 999, 400_000)).unwrap(),
            "12 of 20 messages, $0.6000 of $1.00"
        );
        assert_eq!(some.left(&spent(80, 0, 0)).unwrap(), "0 of 20 messages, $1.00 of $1.00");
        assert_eq!(Budget::NONE.left(&spent(1, 1, 1)), None);
        assert_eq!(some.told().unwrap(), "20 messages, $1.00");
        assert_eq!(Budget::NONE.told(), None);
        assert_eq!(spent(1, 1200, 0).told(), "1 message, 1.2k tokens, $0.0000");
    }

    #[test]
    fn a_day_is_that_of_the_zone() {
        let at = Timestamp::from_millis(1_794_700_000_000);
        let utc = Day::of(at, &TimeZone::UTC);
        assert_eq!(utc.number(), 20_771);
        assert_eq!(begins_anew(at, &TimeZone::UTC), "2026-11-15 00:00");
        let east = TimeZone::fixed(jiff::tz::offset(14));
        assert_eq!(Day::of(at, &east).number(), 20_772);
        assert_eq!(begins_anew(at, &east), "2026-11-16 00:00");
        assert_eq!(Day::of(Timestamp::from_millis(-1), &TimeZone::UTC).number(), -1);
        assert_eq!(Day::numbered(5).before(7).number(), -2);
    }

    #[test]
    fn payers_are_told_apart() {
        let account = AccountId::literal("bench");
        let sender = Payer::Sender(account.clone(), SenderId::literal("7"));
        assert_eq!(sender.to_string(), "bench/7");
        assert_eq!(Payer::Chat(account, ChatId::literal("7")).to_string(), "bench/7");
        assert_eq!(Payer::Person("Ann".into()).to_string(), "Ann");
    }

    fn some_limit() -> impl Strategy<Value = Option<u64>> {
        prop::option::of(0_u64..5)
    }

    proptest! {
        #[test]
        fn spending_more_never_leaves_more(
            limits in (some_limit(), some_limit(), some_limit()),
            before in (0_u64..5, 0_u64..5, 0_u64..5),
            more in (0_u64..5, 0_u64..5, 0_u64..5),
        ) {
            let budget = budget(limits.0, limits.1, limits.2);
            let first = spent(before.0, before.1, before.2);
            let mut second = first;
            second += spent(more.0, more.1, more.2);
            for need in [Need::Begin, Need::GoOn] {
                if budget.used_up(&first, need).is_some() {
                    prop_assert!(budget.used_up(&second, need).is_some());
                }
            }
            if budget.used_up(&first, Need::Begin).is_none() {
                prop_assert!(budget.messages.is_none_or(|limit| first.messages < limit));
                prop_assert!(budget.tokens.is_none_or(|limit| first.tokens < limit));
                prop_assert!(budget.micros.is_none_or(|limit| first.micros < limit));
            }
        }
    }
}
