//! What a vendor does with what it is asked to do.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use talaria_clock::{Clock, SystemClock};
use talaria_model::{
    Act, Capabilities, Content, Deletes, Files, Idempotency, Marks, Markup, MessageId, Outbound,
    Receipt, Whispers,
};
use talaria_platform::{Fate, FileStore, Found, Outgoing, SendError};
use talaria_render::{parse, render};

use super::{Conduct, Reach, Shown, Vendor, is_marked};

pub(super) struct Mouth {
    pub(super) vendor: Vendor,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) files: Arc<dyn FileStore>,
    pub(super) connection: u64,
}

#[async_trait]
impl Outgoing for Mouth {
    async fn send(&self, outbound: &Outbound) -> Result<Receipt, SendError> {
        let ground = &self.vendor.0.ground;
        let (account, id) = (&self.vendor.0.account, &outbound.id);
        let durable =
            !matches!(outbound.act, Act::Typing | Act::Rest | Act::Draft(_) | Act::Mark { .. });
        if durable {
            ground.points.pass(format!("{account} is sent {id}: {}", words(outbound))).await;
        } else if ground.points.alive() == crate::sim::points::Alive::No {
            return std::future::pending().await;
        }
        let conduct = {
            let mut truth = self.vendor.lock();
            if truth.connection != self.connection || truth.reach == Reach::Refused {
                return Err(SendError::Unreachable { reason: "hung up".into() });
            }
            truth.acts.push((self.clock.now(), outbound.clone()));
            let silent = truth.reach == Reach::Silent;
            match &mut truth.script {
                _ if silent => Conduct::LosesSilently,
                Some(script) => script(outbound),
                None => Conduct::Shows,
            }
        };
        ground.log.note(format_args!("{account} {conduct:?}"));
        self.vendor.bump();
        let unconfirmed = || {
            *self.vendor.lock().doubtful.entry(id.clone()).or_default() += 1;
            Err(SendError::Unconfirmed { reason: "silence".into() })
        };
        if let Conduct::ShowsAfter(wait) = conduct {
            SystemClock.sleep(wait).await;
        }
        let sent = match conduct {
            Conduct::Shows | Conduct::ShowsAfter(_) => {
                let message = self.show(outbound).await;
                message.map(|message| Receipt { message, at: self.clock.now() })
            }
            Conduct::ShowsNameless => {
                let message = self.show(outbound).await;
                message.map(|_| Receipt { message: None, at: self.clock.now() })
            }
            Conduct::ShowsSilently => match self.show(outbound).await {
                Ok(_) => unconfirmed(),
                Err(error) => Err(error),
            },
            Conduct::LosesSilently => unconfirmed(),
            Conduct::Refuses(error) => Err(error),
            Conduct::Panics => {
                // Whoever hears only that it broke down cannot know more.
                *self.vendor.lock().doubtful.entry(id.clone()).or_default() += 1;
                panic!("the test says so")
            }
        };
        let refuses = |error: &SendError| matches!(error.fate(), Fate::Drop | Fate::Plain);
        if sent.as_ref().is_err_and(refuses) {
            self.vendor.lock().refused.insert(id.clone());
        }
        if let Err(SendError::Gone { .. }) = &sent {
            self.vendor.lock().gone.insert(place(outbound));
        }
        self.vendor.bump();
        if durable {
            ground.points.pass(format!("{account} answers {id}")).await;
        }
        sent
    }

    async fn find(&self, outbound: &Outbound) -> Result<Found, SendError> {
        let ground = &self.vendor.0.ground;
        ground.points.pass(format!("{} looks for {}", self.vendor.0.account, outbound.id)).await;
        let (reach, finds) = {
            let truth = self.vendor.lock();
            if truth.connection != self.connection {
                return Err(SendError::Unreachable { reason: "hung up".into() });
            }
            (truth.reach, truth.finds)
        };
        match reach {
            Reach::Refused => return Err(SendError::Unreachable { reason: "no route".into() }),
            Reach::Silent => return std::future::pending().await,
            Reach::Open if !finds => return Ok(Found::Unknown),
            Reach::Open => {}
        }
        let truth = self.vendor.lock();
        let shown = truth.shown.iter().find(|shown| shown.by == outbound.id);
        Ok(match shown {
            Some(shown) => {
                let message = Some(shown.message.clone());
                Found::Shown(Receipt { message, at: self.clock.now() })
            }
            None => Found::Absent,
        })
    }
}

impl Mouth {
    async fn show(&self, outbound: &Outbound) -> Result<Option<MessageId>, SendError> {
        let can = self.vendor.0.can;
        if let Act::Post(content) | Act::Edit { content, .. } = &outbound.act {
            fits(content, &can)?;
            for file in &content.files {
                if !self.can_be_read(file).await {
                    return Err(SendError::Rejected { reason: "the file is not there".into() });
                }
            }
        }
        let now = self.vendor.0.ground.time.now();
        if self.vendor.0.ground.points.alive() == crate::sim::points::Alive::No {
            return std::future::pending().await;
        }
        let mut truth = self.vendor.lock();
        truth.changes += 1;
        let changed = truth.changes;
        match &outbound.act {
            Act::Typing => {
                truth.works.insert(place(outbound));
                Ok(None)
            }
            Act::Rest => {
                truth.works.remove(&place(outbound));
                Ok(None)
            }
            Act::Draft(draft) if draft.is_blank() => {
                truth.drafts.remove(&outbound.id);
                Ok(None)
            }
            Act::Draft(draft) => {
                truth.drafts.insert(outbound.id.clone(), (draft.clone(), now));
                Ok(None)
            }
            Act::Mark { message, progress } if can.marks == Marks::Shown => {
                truth.marks.insert(message.clone(), *progress);
                Ok(None)
            }
            Act::Post(content) => {
                truth.works.remove(&place(outbound));
                truth.drafts.retain(|id, _| id.with_part(0) != outbound.id.with_part(0));
                let key = (outbound.id.clone(), content.anew);
                if let (Idempotency::Keyed(window), Some((known, at))) =
                    (can.idempotency, truth.keys.get(&key))
                    && now.since(*at) < window
                {
                    let is_there = truth.shown.iter().any(|shown| shown.message == *known);
                    return is_there.then(|| Some(known.clone())).ok_or(SendError::Vanished);
                }
                truth.posted += 1;
                let message = MessageId::new(format!("m{}", truth.posted)).expect("an id");
                truth.keys.insert(key, (message.clone(), now));
                truth.shown.push(Shown {
                    message: message.clone(),
                    to: outbound.to.clone(),
                    content: content.clone(),
                    by: outbound.id.clone(),
                    edits: 0,
                    was_marked: is_marked(content),
                    at: now,
                    changed,
                });
                Ok(Some(message))
            }
            Act::Edit { message, content } => {
                let shown = truth.shown.iter_mut().find(|shown| shown.message == *message);
                let no_such = || SendError::Rejected { reason: "no such message".into() };
                let shown = shown.ok_or_else(no_such)?;
                if shown.content != *content {
                    shown.changed = changed;
                }
                shown.was_marked |= is_marked(content);
                shown.content = content.clone();
                shown.edits += 1;
                Ok(Some(message.clone()))
            }
            Act::Delete { message } if can.deletes == Deletes::Anytime => {
                truth.shown.retain(|shown| shown.message != *message);
                Ok(None)
            }
            Act::Delete { .. } | Act::React { .. } | Act::Mark { .. } => {
                Err(SendError::Rejected { reason: "cannot do that".into() })
            }
        }
    }

    async fn can_be_read(&self, file: &talaria_model::FileRef) -> bool {
        let Ok(mut bytes) = self.files.read(&file.id).await else { return false };
        let mut size = 0;
        while let Some(Ok(chunk)) = bytes.next().await {
            size += chunk.len() as u64;
        }
        size == file.size
    }
}

/// A vendor counts for itself.
fn fits(content: &Content, can: &Capabilities) -> Result<(), SendError> {
    let refused = |reason: String| Err(SendError::Rejected { reason });
    let length = match can.markup {
        Markup::Plain | Markup::Markdown => content.text.chars().count(),
        formatted => render(&parse(&content.text), formatted.into()).text.chars().count(),
    };
    if length > can.text.max as usize {
        return refused(format!("{length} characters are too many"));
    }
    if content.whispered_to.is_some() && can.whispers == Whispers::Never {
        return refused("nobody can whisper here".into());
    }
    match can.files {
        Files::Never if !content.files.is_empty() => refused("no files here".into()),
        Files::UpTo(most) if content.files.iter().any(|file| file.size > most) => {
            refused("the file is too large".into())
        }
        _ => Ok(()),
    }
}

/// A chat with its thread, as one word.
pub(in crate::sim) fn place(outbound: &Outbound) -> String {
    format!("{:?}", outbound.to)
}

fn words(outbound: &Outbound) -> String {
    let (verb, text) = match &outbound.act {
        Act::Post(content) => ("post", content.text.as_str()),
        Act::Edit { content, .. } => ("edit", content.text.as_str()),
        Act::Draft(draft) => ("draft", draft.content.text.as_str()),
        Act::Delete { .. } => ("delete", ""),
        Act::React { .. } => ("react", ""),
        Act::Mark { .. } => ("mark", ""),
        Act::Typing => ("typing", ""),
        Act::Rest => ("rest", ""),
    };
    format!("{verb} in {}: {text:.60?}", outbound.to.chat.id)
}
