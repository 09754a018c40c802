//! From a platform into the journal: check, commit, only then acknowledge.

use std::sync::Arc;

use talaria_model::Inbound;
use talaria_platform::{Batch, Committed, Verdict};
use talaria_session::{Admission, SessionKey};
use talaria_store::{Admitted, Delivered, JournalState, StoreError};

use crate::accounts::ConnectedAccount;
use crate::shared::Shared;

/// The longest text that is taken in. Platforms have lower limits of their own; this one keeps a
/// broken or hostile one from filling the journal.
const LONGEST_TEXT: usize = 256 * 1024;

/// Makes a batch durable, tells the platform, and hands the events to their lanes. On an error
/// nothing was stored and the platform has not been told: it will deliver again.
pub(crate) async fn admit(
    shared: &Arc<Shared>,
    account: &ConnectedAccount,
    batch: Batch,
) -> Result<(), StoreError> {
    let Batch { events, cursor, ack } = batch;
    let mut accepted = Vec::with_capacity(events.len());
    for inbound in events {
        if inbound.to.account != account.plan.id || is_too_long(&inbound) {
            tracing::warn!(account = %account.plan.id, "refused an event that breaks the contract");
            continue;
        }
        let state = match account.plan.access.admit(&inbound) {
            Admission::Admit => JournalState::Unread,
            Admission::Deny(deny) => JournalState::Denied(deny.reason().to_owned()),
        };
        accepted.push((SessionKey::of(&inbound, shared.scope), inbound, state));
    }
    let delivered = Delivered {
        account: account.plan.id.clone(),
        events: accepted.clone(),
        cursor: cursor.map(|cursor| cursor.0),
        at: shared.clock.now(),
    };
    let admitted = shared.store.admit(delivered).await?;
    let verdicts =
        accepted.iter().zip(&admitted).map(|((_, _, state), admitted)| match (admitted, state) {
            (Admitted::Repeated(_), _) => Verdict::Repeated,
            (Admitted::Journalled(_), JournalState::Denied(_)) => Verdict::Denied,
            (Admitted::Journalled(seq), _) => Verdict::Journalled(*seq),
        });
    ack.committed(Committed(verdicts.collect()));
    for ((key, inbound, state), admitted) in accepted.into_iter().zip(admitted) {
        if let (Admitted::Journalled(seq), JournalState::Unread) = (admitted, state) {
            crate::lanes::offer(shared, key, seq, inbound);
        }
    }
    Ok(())
}

fn is_too_long(inbound: &Inbound) -> bool {
    match &inbound.kind {
        talaria_model::InboundKind::Said(message) => message.text.len() > LONGEST_TEXT,
        _ => false,
    }
}
