//! How many bytes of files each person has sent today. One who sends without end must not take the room
//! of all the others.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use talaria_model::{AccountId, SenderId, Timestamp};

/// The most people who are counted one by one. The rest share what one of them may send.
const PEOPLE: usize = 10_000;

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Somebody who sends files. None are all who are not counted one by one.
type Person = Option<(AccountId, SenderId)>;

/// What everybody has sent today.
pub(crate) struct Shares {
    most: u64,
    today: Mutex<Today>,
}

#[derive(Default)]
struct Today {
    day: i64,
    sent: BTreeMap<Person, u64>,
}

impl Shares {
    /// A person may send `most` bytes in a day.
    pub(crate) fn new(most: u64) -> Self {
        Self { most, today: Mutex::default() }
    }

    /// Counts bytes that somebody sends, unless they are too many.
    pub(crate) fn take(
        &self,
        account: &AccountId,
        sender: &SenderId,
        bytes: u64,
        now: Timestamp,
    ) -> Result<(), TooMany> {
        let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        let day = now.as_millis().div_euclid(DAY);
        if today.day != day {
            *today = Today { day, sent: BTreeMap::new() };
        }
        let mut person = Some((account.clone(), sender.clone()));
        if !today.sent.contains_key(&person) && today.sent.len() >= PEOPLE {
            person = None;
        }
        let sent = today.sent.entry(person).or_default();
        let all = sent.checked_add(bytes).filter(|all| *all <= self.most).ok_or(TooMany)?;
        *sent = all;
        Ok(())
    }
}

/// Somebody has sent as much as they may in a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("whoever sent it has sent too many bytes today")]
pub(crate) struct TooMany;

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(number: usize) -> SenderId {
        SenderId::new(number.to_string()).expect("an id")
    }

    #[test]
    fn everybody_has_a_share_of_their_own_and_a_new_one_every_day() {
        let shares = Shares::new(100);
        let (work, club) = (AccountId::literal("work"), AccountId::literal("club"));
        let noon = Timestamp::from_millis(DAY / 2);
        assert_eq!(shares.take(&work, &sender(1), 60, noon), Ok(()));
        assert_eq!(shares.take(&work, &sender(1), 41, noon), Err(TooMany));
        assert_eq!(shares.take(&work, &sender(1), 40, noon), Ok(()));
        assert_eq!(shares.take(&work, &sender(1), 1, noon), Err(TooMany));
        assert_eq!(shares.take(&work, &sender(2), 100, noon), Ok(()));
        assert_eq!(shares.take(&club, &sender(1), 100, noon), Ok(()));
        assert_eq!(shares.take(&work, &sender(1), u64::MAX, noon), Err(TooMany));
        let tomorrow = Timestamp::from_millis(DAY);
        assert_eq!(shares.take(&work, &sender(1), 100, tomorrow), Ok(()));
    }

    #[test]
    fn only_so_many_people_are_counted_one_by_one() {
        let shares = Shares::new(10);
        let (account, now) = (AccountId::literal("work"), Timestamp::default());
        for number in 0..PEOPLE {
            assert_eq!(shares.take(&account, &sender(number), 1, now), Ok(()));
        }
        assert_eq!(shares.take(&account, &sender(PEOPLE), 10, now), Ok(()));
        assert_eq!(shares.take(&account, &sender(PEOPLE + 1), 1, now), Err(TooMany));
        assert_eq!(shares.take(&account, &sender(0), 9, now), Ok(()), "who was counted still is");
        assert_eq!(shares.today.lock().unwrap().sent.len(), PEOPLE + 1);
    }
}
