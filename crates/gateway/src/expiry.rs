//! Puts conversations away that are over by their reset policy.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use talaria_model::{SessionId, Timestamp};
use talaria_session::{Event, SessionKey};
use talaria_store::StoreError;

use crate::chores::keep_doing;
use crate::shared::Shared;
use crate::tasks::{Panicked, calm};

/// When the first look is taken, so that a start is not slowed down by it.
const FIRST: Duration = Duration::from_secs(60);

/// How often afterwards.
const EVERY: Duration = Duration::from_secs(300);

/// No policy is shorter than this; what was heard of since is not looked at.
const SHORTEST: Duration = Duration::from_secs(60);

/// Sessions that are looked at at once.
const PAGE: usize = 200;

/// How long letting go may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// After so many tries a conversation counts as put away.
const TRIES: u32 = 3;

/// Somebody who keeps something for a life of a conversation.
#[async_trait]
pub trait Finalizer: Send + Sync {
    /// Lets go of it: the life is over. Says why not if that is not possible yet; it is tried again, and
    /// not for ever.
    async fn finalize(&self, life: &SessionId) -> Result<(), String>;
}

/// Looks again and again.
pub(crate) fn spawn(shared: &Arc<Shared>) {
    keep_doing(shared, "putting conversations away", look_again_and_again);
}

async fn look_again_and_again(shared: Arc<Shared>) {
    shared.clock.sleep(FIRST).await;
    loop {
        if let Err(error) = look(&shared).await {
            tracing::warn!(%error, "conversations that are over cannot be put away");
        }
        shared.clock.sleep(EVERY).await;
    }
}

async fn look(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let quiet = before(shared.clock.now(), SHORTEST);
        let page = shared.store.quiet_since(quiet, after, PAGE).await?;
        after = page.last().cloned();
        let last = page.len() < PAGE;
        for key in page {
            // What is wrong with one of them is no reason to keep the others.
            match calm(look_at(shared, &key)).await {
                Ok(Ok(())) => {}
                Ok(Err(error @ StoreError::Unavailable { .. })) => return Err(error),
                Ok(Err(error)) => {
                    tracing::warn!(session = %key, %error, "a conversation cannot be looked at");
                }
                Err(Panicked) => {
                    tracing::error!(session = %key, "looking at a conversation panicked");
                }
            }
        }
        if last {
            return Ok(());
        }
    }
}

async fn look_at(shared: &Arc<Shared>, key: &SessionKey) -> Result<(), StoreError> {
    if let Some(life) = over(shared, key).await?
        && put_away(shared, &life).await?
    {
        crate::lanes::tell(shared, key.clone(), Event::PutAway);
    }
    Ok(())
}

/// The life that a session is in, if it is over.
async fn over(shared: &Arc<Shared>, key: &SessionKey) -> Result<Option<SessionId>, StoreError> {
    let Some(mut session) = shared.store.load(key).await? else { return Ok(None) };
    session.rules = shared.rules_for(key);
    Ok(session.expired(shared.clock.now()).map(|_| session.id))
}

/// Lets everybody who keeps something for a life let go of it. Says whether it is put away now: it is
/// when all of them did, or when they had their tries.
async fn put_away(shared: &Shared, life: &SessionId) -> Result<bool, StoreError> {
    let tries = shared.store.put_away(life).await?;
    let mut refused = false;
    for finalizer in &shared.finalizers {
        let done = async {
            tokio::select! {
                done = calm(finalizer.finalize(life)) => done.unwrap_or(Err("it panicked".into())),
                () = shared.clock.sleep(PATIENCE) => Err("it took too long".into()),
            }
        };
        if let Err(why) = done.await {
            tracing::warn!(%life, tries, %why, "a conversation that is over was not put away");
            refused = true;
        }
    }
    Ok(!refused || tries >= TRIES)
}

/// So long before a moment.
pub(crate) fn before(now: Timestamp, ago: Duration) -> Timestamp {
    let ago = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(ago))
}
