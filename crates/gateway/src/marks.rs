//! Shows on the message that began a turn how far its answer is, where a platform can. It is for show
//! only: nothing waits for it, and nothing is lost with it.

use std::sync::Arc;
use std::time::Duration;

use talaria_model::{Act, Address, Marks, MessageId, Outbound, OutboundId, Progress};
use tokio::sync::oneshot;

use crate::discretion;
use crate::pace;
use crate::shared::Shared;
use crate::tasks::calm;

/// How long one sign may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How often a sign is put off for something else before it is left out.
const PUT_OFF: u32 = 8;

/// Shows that a turn goes on, until it is told how it ended or dropped.
#[derive(Default)]
pub(crate) struct Marking(Option<oneshot::Sender<Progress>>);

impl Marking {
    /// Shows how it ended.
    pub(crate) fn end(self, progress: Progress) {
        if let Some(end) = self.0 {
            // Nobody listens while the gateway ends.
            let _ = end.send(progress);
        }
    }
}

/// Shows that a turn has begun. `id` is what it will say first.
pub(crate) fn begin(
    shared: &Arc<Shared>,
    to: &Address,
    id: OutboundId,
    message: Option<MessageId>,
) -> Marking {
    let Some(message) = message else { return Marking::default() };
    if shared.capabilities(to).marks == Marks::Never {
        return Marking::default();
    }
    let (end, ended) = oneshot::channel();
    let (shared_by_task, to) = (shared.clone(), to.clone());
    shared.tasks.spawn(async move {
        let shared = shared_by_task;
        show(&shared, &to, &id, &message, Progress::Seen).await;
        // A turn that is abandoned leaves no sign.
        let progress = ended.await.unwrap_or(Progress::Nothing);
        show(&shared, &to, &id, &message, progress).await;
    });
    Marking(Some(end))
}

async fn show(
    shared: &Shared,
    to: &Address,
    id: &OutboundId,
    message: &MessageId,
    progress: Progress,
) {
    let Some(account) = shared.accounts.get(&to.account) else { return };
    let bucket = shared.capabilities(to).pace;
    let chat = account.purses.of(&to.chat.id, shared.clock.now());
    for _ in 0..PUT_OFF {
        let now = shared.clock.now();
        match pace::spare(&[(&account.purse, bucket.account), (&chat, None)], now) {
            Ok(()) => {
                let Some(outgoing) = account.outgoing() else { return };
                let act = Act::Mark { message: message.clone(), progress };
                let outbound = Outbound { id: id.clone(), to: to.clone(), act };
                tokio::select! {
                    biased;
                    sent = calm(outgoing.send(&outbound)) => {
                        if let Ok(Err(error)) = sent {
                            let error = discretion::told(shared, error);
                            account.heed_lightly(&chat, &error, shared.clock.now());
                        }
                    }
                    () = shared.clock.sleep(TIMEOUT) => {}
                }
                return;
            }
            Err(wait) => shared.clock.sleep(wait).await,
        }
    }
}
