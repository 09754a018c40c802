//! Listening by asking: one long request after the other. Asking for the updates from a number on
//! confirms all before it, so the number is the position, and asking again is the acknowledgement.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt, stream};
use serde_json::value::RawValue;
use serde_json::{Map, json};
use talaria_platform::{Ack, Arrival, Arrivals, Batch, Committed, Cursor, LinkError, Proof};

use super::api::WebhookState;
use super::client::Client;
use super::decode;
use super::ears::{Ears, HEARD, Heard};
use super::encode::arguments;
use super::presses::Answer;
use super::refusal::Failure;
use crate::wire::http::CallError;

/// How long Telegram holds a request for which there is nothing. It holds none longer than 50 s.
const HELD: Duration = Duration::from_secs(30);

/// How much longer than that an answer may take.
const SLACK: Duration = Duration::from_secs(15);

/// How long Telegram may take to say how much waits for us.
const ASK: Duration = Duration::from_secs(10);

/// Something small to be done while listening.
pub(super) type Chore = BoxFuture<'static, ()>;

/// The updates of a bot, from a position on.
pub(super) fn arrivals(
    client: Arc<Client>,
    ears: Ears,
    from: Option<i64>,
    chores: Vec<Chore>,
) -> Arrivals {
    let poll = Poll {
        client,
        ears,
        next: from,
        is_held_back: false,
        answers: Arc::default(),
        chores: chores.into_iter().collect(),
    };
    stream::unfold(poll, Poll::next).boxed()
}

/// Why no updates came. Telegram ends a poll by itself when nothing happens: one that does not end is not
/// heard by anybody, however well the connection is.
fn unheard(failure: Failure) -> LinkError {
    match failure {
        Failure::Call(CallError::Silence(_)) => {
            let seconds = (HELD + SLACK).as_secs();
            let reason = format!("a poll had no end after {seconds} s");
            LinkError::Deaf { reason, until: Proof::Life, since: None }
        }
        failure => failure.of_link(),
    }
}

/// Where a bot's position is written down: it means nothing to another bot.
pub(super) fn cursor(bot: i64, next: i64) -> Cursor {
    Cursor(format!("{bot}:{next}"))
}

/// The position that was written down for this bot.
pub(super) fn position(bot: i64, cursor: &Cursor) -> Option<i64> {
    let (owner, next) = cursor.0.split_once(':')?;
    (owner == bot.to_string()).then(|| next.parse().ok())?
}

struct Poll {
    client: Arc<Client>,
    ears: Ears,
    /// The first update that is not committed yet. Telegram numbers anew after a quiet week, so that it
    /// can also get smaller.
    next: Option<i64>,
    /// Whether Telegram had something for us and did not say what.
    is_held_back: bool,
    /// Answers to presses that are committed.
    answers: Arc<Mutex<Vec<Answer>>>,
    chores: FuturesUnordered<Chore>,
}

impl Poll {
    async fn next(mut self) -> Option<(Result<Arrival, LinkError>, Self)> {
        let arrival = self.arrival().await;
        Some((arrival, self))
    }

    async fn arrival(&mut self) -> Result<Arrival, LinkError> {
        loop {
            self.take_up_answers();
            let updates = self.ask().await?;
            if updates.is_empty() {
                if self.is_held_back().await? {
                    continue;
                }
                return Ok(Arrival::Alive);
            }
            self.is_held_back = false;
            let mut numbered = Vec::with_capacity(updates.len());
            for update in updates {
                let number = decode::number(&update).ok_or_else(|| LinkError::Lost {
                    reason: "an update without a number".into(),
                })?;
                numbered.push((number, update));
            }
            let batch = self.batch(&numbered);
            return Ok(Arrival::Batch(batch));
        }
    }

    /// Whether something waits for us although there was nothing. Once that can be chance: it may have
    /// come in between. A second time we are deaf.
    async fn is_held_back(&mut self) -> Result<bool, LinkError> {
        let state = self.client.ask::<WebhookState>("getWebhookInfo", &Map::new(), ASK).await;
        let waits = state.is_ok_and(|state| state.pending_update_count > 0);
        if waits && self.is_held_back {
            let reason = "Telegram holds updates back".into();
            return Err(LinkError::Deaf { reason, until: Proof::Life, since: None });
        }
        self.is_held_back = waits;
        Ok(waits)
    }

    /// What these updates say, with the position behind them.
    fn batch(&mut self, numbered: &[(i64, Box<RawValue>)]) -> Batch {
        let mut events = Vec::with_capacity(numbered.len());
        for (number, update) in numbered {
            self.next = Some(number.saturating_add(1));
            match self.ears.hear(*number, update) {
                Heard::Event(event) => events.push(*event),
                Heard::Nothing { press } => self.answer(press.map(Answer::quiet)),
            }
        }
        let presses: Vec<Option<String>> = events.iter().map(|event| event.press.clone()).collect();
        let answers = self.answers.clone();
        let ack = Ack::with(move |Committed(verdicts)| {
            let given = presses
                .into_iter()
                .enumerate()
                .filter_map(|(at, press)| press.map(|press| Answer::to(press, verdicts.get(at))));
            answers.lock().unwrap_or_else(PoisonError::into_inner).extend(given);
        });
        Batch {
            events: events.into_iter().map(|event| event.inbound).collect(),
            cursor: self.next.map(|next| cursor(self.ears.us.names.id, next)),
            ack,
        }
    }

    fn take_up_answers(&mut self) {
        let committed =
            std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner));
        committed.into_iter().for_each(|answer| self.answer(Some(answer)));
    }

    fn answer(&self, answer: Option<Answer>) {
        if let Some(answer) = answer {
            let client = self.client.clone();
            self.chores.push(async move { answer.give(&client).await }.boxed());
        }
    }

    /// Asks for updates, and does the small things meanwhile.
    async fn ask(&mut self) -> Result<Vec<Box<RawValue>>, LinkError> {
        let mut body = arguments(json!({
            "timeout": HELD.as_secs(),
            "allowed_updates": HEARD,
        }));
        if let Some(next) = self.next {
            body.insert("offset".into(), next.into());
        }
        let client = self.client.clone();
        let asking = client.ask::<Vec<Box<RawValue>>>("getUpdates", &body, HELD + SLACK);
        let mut asking = std::pin::pin!(asking);
        loop {
            tokio::select! {
                biased;
                updates = &mut asking => return updates.map_err(unheard),
                Some(()) = self.chores.next() => {}
            }
        }
    }
}
